#!/usr/bin/env python3
"""Tests the campaign with programs that only pretend: what a ladder tries, what it makes of the
answers, and what the table says."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import campaign
import first_notice
from bugs import BUGS
from ladder import LADDER, QUICK, UNITS

# Notices a bug from 4,000 images on, but never without one.
EXPLORER = """#!/bin/sh
[ "$PERDIX_PLANTED" -ge 0 ] && [ "$4" -ge 4000 ] && { echo 'FAILED: it'; exit 1; }
exit 0
"""
FUZZER = """#!/bin/sh
[ "$PERDIX_PLANTED" -ge 0 ] || exit 0
echo 'sptree u64 -> u64, cpu_cache: seed 17 is not durably linearizable'
exit 1
"""


def number_of(kind):
    """A bug whose first subject is of the kind."""
    return next(n for n, b in enumerate(BUGS) if campaign.kind_and_rest(b.subjects[0])[0] == kind)


class LadderTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path_of(self, script):
        """Has all programs do the same."""
        program = Path(self.folder.name) / "program"
        program.write_text(script)
        program.chmod(0o755)
        return lambda _: str(program)

    def first_notice(self, kind, script, **changes):
        rungs = [rung._replace(**changes) for rung in LADDER if rung.kind == kind]
        with mock.patch.object(campaign, "LADDER", rungs):
            return campaign.Ladder(self.path_of(script)).first_notice(number_of(kind))

    def test_explorer_counts_the_first_total_that_notices(self):
        row = self.first_notice("explorer", EXPLORER)
        self.assertEqual((row.noticed_by, row.after, row.unit), ("explorer", "4000", "images"))
        self.assertEqual(first_notice.verdict_of(row), "deep")

    def test_schedules_count_from_the_first_seed(self):
        row = self.first_notice("schedules", FUZZER)
        self.assertEqual((row.noticed_by, row.after), ("schedules", "17"))
        self.assertEqual(first_notice.verdict_of(row), "quick")

    def test_a_bug_may_survive(self):
        row = self.first_notice("unit", "#!/bin/sh\n")
        self.assertEqual(first_notice.verdict_of(row), "none")

    def test_what_fails_without_a_bug_is_no_notice(self):
        with self.assertRaises(RuntimeError):
            self.first_notice("unit", "#!/bin/sh\nexit 1\n")

    def test_what_hangs_is_noticed_where_nothing_else_notices_it(self):
        script = "#!/bin/sh\n[ $PERDIX_PLANTED -lt 0 ] || exec sleep 60\n"
        self.assertEqual(self.first_notice("unit", script, size=1).noticed_by, "unit")


class TableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patched = mock.patch.object(first_notice, "TABLE", Path(folder.name) / "table.tsv")
        patched.start()
        self.addCleanup(patched.stop)

    def test_is_read_as_it_was_written_and_sorted(self):
        rows = [first_notice.row_of(bug, "unit", 3, "src/a_test") for bug in BUGS[:3]]
        first_notice.write_table({row.key: row for row in rows})
        self.assertEqual(sorted(rows), list(first_notice.read_table().values()))

    def test_only_bugs_that_changed_are_left(self):
        rows = {first_notice.key_of(bug): first_notice.row_of(bug, "unit", 3, "") for bug in BUGS}
        changed = first_notice.key_of(BUGS[5])
        rows[changed] = rows[changed]._replace(sources="other")
        self.assertEqual(list(campaign.left_of(range(len(BUGS)), rows, False)), [5])
        self.assertEqual(list(campaign.left_of([1, 2], rows, True)), [1, 2])

    def test_keys_are_unique(self):
        self.assertEqual(len({first_notice.key_of(bug) for bug in BUGS}), len(BUGS))

    def test_page_counts(self):
        kinds = ("unit", "storm", first_notice.NONE)
        rows = [first_notice.row_of(bug, kind, 3, "") for bug, kind in zip(BUGS, kinds)]
        page = first_notice.page(rows, len(rows))
        self.assertIn("quick 1 of 3 (33.3 %), by deep only 1, by none 1", page)
        self.assertIn(f"| {first_notice.key_of(BUGS[1])} | storm | 3 s |", page)

    def test_page_of_some_bugs_has_no_share(self):
        page = first_notice.page([first_notice.row_of(BUGS[0], "unit", 3, "")], len(BUGS))
        self.assertIn(f"1 of {len(BUGS)} bugs", page)
        self.assertNotIn("%", page)


class DataTest(unittest.TestCase):
    def test_kinds_have_units(self):
        self.assertTrue({rung.kind for rung in LADDER} | set(QUICK) <= set(UNITS))

    def test_each_bug_has_steps(self):
        for bug in BUGS:
            kind = campaign.kind_and_rest(bug.subjects[0])[0]
            self.assertIn(kind, {step.kind for step in campaign.steps_of(bug)}, bug.name)


if __name__ == "__main__":
    unittest.main()
