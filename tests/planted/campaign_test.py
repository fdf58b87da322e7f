#!/usr/bin/env python3
"""Tests the campaign with programs that only pretend: what a ladder tries, what it makes of the
answers, and what the table says."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import campaign
import first_notice
import ladder
from bugs import BUGS
from ladder import DEEP, QUICK, Step, Test

BUG = next(bug for bug in BUGS if bug.path.startswith("src/index/sptree/"))
WITH_BUG = '[ "$PERDIX_PLANTED" -ge 0 ] || exit 0\n'
EXPLORER = f"""{WITH_BUG}echo 'a:  2 rounds, 112 images (in recovery 1 + 2 + 3), 9/s'
echo 'b:  1 rounds,   4 images (in recovery 1 + 2 + 3), 9/s'
echo 'FAILED: it'; exit 1
"""
FUZZER = f"""{WITH_BUG}echo 'sptree u64 -> u64, cpu_cache: seed 17 is not durably linearizable'
exit 1
"""


def listed(name, program, *options, variables=()):
    """A test as ctest lists it."""
    properties = [{"name": "ENVIRONMENT", "value": list(variables)}] if variables else []
    return {"name": name, "command": [f"/build/{program}", *options], "properties": properties}


def tests_of(*tests):
    return list(ladder.tests_of(json.dumps({"tests": tests})))


class ListingTest(unittest.TestCase):
    def test_kinds_and_topics(self):
        tests = tests_of(
            listed("crash", "tests/crash/crash_explorer", "--engine", "sptree:", "--total", "9"),
            listed("plugin", "tests/linearizability/schedule_fuzzer", "--engine", "tips:hash"),
            listed("wal_test", "src/wal/wal_test", "--gtest_filter=-*a*"),
            listed("scaled", "tests/conformance/perdix_conformance", variables=["SCALE=0.1"]),
            listed("tidy", "usr/bin/python3"),
        )
        self.assertEqual(
            [(test.kind, test.about) for test in tests],
            [
                ("explorer", "sptree"),
                ("schedules", "tips"),
                ("unit", "wal"),
                ("conformance", "perdix_conformance"),
            ],
        )
        self.assertEqual(tests[3].variables, (("SCALE", "0.1"),))


class StepsTest(unittest.TestCase):
    def steps_of(self, subjects, *tests, path="src/index/sptree/smo.cc"):
        bug = BUG._replace(path=path, subjects=subjects)
        return [step.command for step in ladder.quick_steps(bug, tests)]

    def test_only_tests_of_its_topics(self):
        sptree = Test("a", "explorer", ("x",), (), "sptree")
        memory = Test("b", "unit", ("y",), (), "sptree_memory")
        others = (Test("c", "explorer", ("z",), (), "cceh"), Test("d", "unit", ("w",), (), "sp"))
        self.assertEqual(self.steps_of(("sptree",), sptree, memory, *others), [("x",), ("y",)])

    def test_topics_come_from_subjects_too(self):
        wal, cceh = Test("a", "explorer", ("x",), (), "wal"), Test("b", "unit", ("y",), (), "cceh")
        program = "unit src/index/cceh/cceh_test *"
        for subject in ("cceh+b:u64:u64", "storm --engine cceh+b", program):
            self.assertIn(("y",), self.steps_of((subject,), wal, cceh, path="src/wal/log.cc"))

    def test_its_cases_and_kinds_come_first(self):
        program = Test("a", "unit", ("/b/src/a_test", "--gtest_filter=-*b*"), (), "a")
        explorer = Test("b", "explorer", ("x",), (), "a")
        steps = self.steps_of(("unit src/a_test Some*",), explorer, program)
        self.assertEqual(
            steps,
            [("/b/src/a_test", "--gtest_filter=Some*-*b*"), program.command, explorer.command],
        )

    def test_conformance_is_that_of_the_engine(self):
        conformance = Test(
            "c", "conformance", ("x", "--gtest_filter=*_u64_u64_memory_controller.*-a*:b*"), (), "x"
        )
        expected = ("x", "--gtest_filter=sptree*_u64_u64_memory_controller.*-a*:b*")
        self.assertEqual(self.steps_of(("sptree",), conformance), [expected])
        self.assertEqual(self.steps_of(("pool",), conformance, path="src/pool/a.cc"), [expected])

    def test_each_bug_has_deep_steps(self):
        for bug in BUGS:
            steps = list(ladder.deep_steps(bug, lambda program: program))
            self.assertTrue(steps, bug.name)
            self.assertLessEqual({step.command[0] for step in steps}, ladder.programs_of(bug))


class LadderTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def first_notice(self, kind, script, suite=QUICK, options=()):
        """The row of a bug if the script is all that is tried."""
        program = Path(self.folder.name) / "program"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        step = Step(suite, "the test", kind, (str(program), *options), (("ASKED", "1"),))
        with mock.patch.object(campaign, f"{suite}_steps", return_value=[step]):
            return getattr(campaign.Ladder([], None), suite)(0)

    def test_explorer_counts_all_images(self):
        row = self.first_notice("explorer", EXPLORER)
        self.assertEqual((row.suite, row.test, row.after), ("quick", "the test", "116"))

    def test_schedules_count_from_the_first_seed(self):
        row = self.first_notice("schedules", FUZZER, options=("--seed", "11"))
        self.assertEqual((row.after, row.unit), ("7", "schedules"))

    def test_a_bug_may_survive(self):
        self.assertEqual(self.first_notice("unit", "exit 0\n").suite, "open")
        self.assertEqual(self.first_notice("unit", "exit 0\n", suite=DEEP).suite, "none")

    def test_what_fails_without_a_bug_is_no_notice(self):
        with self.assertRaises(RuntimeError):
            self.first_notice("unit", "exit 1\n")

    def test_runs_have_the_variables_and_a_folder_of_their_own(self):
        script = f'{WITH_BUG}[ "$ASKED" = 1 ] && [ "$PWD" = "$TMPDIR" ] && exit 1\nexit 0\n'
        self.assertEqual(self.first_notice("unit", script).suite, "quick")

    @mock.patch.multiple(campaign, TIMEOUT=1, DEEP_TIMEOUT=1)
    def test_only_what_hangs_in_the_quick_suite_is_noticed(self):
        script = f"{WITH_BUG}exec sleep 60\n"
        self.assertEqual(self.first_notice("unit", script).suite, "quick")
        self.assertEqual(self.first_notice("unit", script, suite=DEEP).suite, "none")


class CampaignTest(unittest.TestCase):
    """Bug 0 is known, 1 is noticed by the quick suite, 2 was missed by it before, 3 is now."""

    def test_the_deep_suite_has_what_the_quick_one_missed(self):
        quick, deep = Step(QUICK, "a", "unit", (), ()), Step(DEEP, "b", "unit", (), ())
        missed = {n: first_notice.row_of(BUGS[n], missed_by=first_notice.OPEN) for n in (2, 3)}
        climber = mock.Mock()
        climber.quick = lambda n: missed[n] if n == 3 else first_notice.row_of(BUGS[n], quick, 1)
        climber.deep = lambda n: first_notice.row_of(BUGS[n], deep, 1)
        with tempfile.TemporaryDirectory() as folder:
            table = mock.patch.object(first_notice, "TABLE", Path(folder) / "table.tsv")
            with table, mock.patch("builtins.print"):
                known = [first_notice.row_of(BUGS[0], quick, 9), missed[2]]
                first_notice.write_table({row.key: row for row in known})
                self.assertEqual(campaign.run(range(4), [1, 3], 2, climber), 0)
                rows = first_notice.read_table()
        found = [rows[first_notice.key_of(BUGS[n])] for n in range(4)]
        self.assertEqual([row.suite for row in found], ["quick", "quick", "deep", "deep"])
        self.assertEqual([row.after for row in found], ["9", "1", "1", "1"])

    def test_what_fails_without_a_bug_is_told(self):
        climber = mock.Mock()
        climber.quick.side_effect = RuntimeError("fails without a bug")
        with tempfile.TemporaryDirectory() as folder:
            table = mock.patch.object(first_notice, "TABLE", Path(folder) / "table.tsv")
            with table, mock.patch("builtins.print"):
                self.assertEqual(campaign.run([0], [0], 1, climber), 1)


class TableTest(unittest.TestCase):
    STEPS = (
        Step(QUICK, "a_test", "unit", (), ()),
        Step(DEEP, "storm", "storm", (), ()),
        None,
    )

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patched = mock.patch.object(first_notice, "TABLE", Path(folder.name) / "table.tsv")
        patched.start()
        self.addCleanup(patched.stop)

    def test_is_read_as_it_was_written_and_sorted(self):
        rows = [first_notice.row_of(bug, self.STEPS[0], 3) for bug in BUGS[:3]]
        first_notice.write_table({row.key: row for row in rows})
        self.assertEqual(sorted(rows), list(first_notice.read_table().values()))

    def test_only_bugs_that_changed_are_left(self):
        rows = {first_notice.key_of(bug): first_notice.row_of(bug) for bug in BUGS}
        changed = first_notice.key_of(BUGS[5])
        rows[changed] = rows[changed]._replace(sources="other")
        self.assertEqual(list(campaign.left_of(range(len(BUGS)), rows, False)), [5])
        self.assertEqual(list(campaign.left_of([1, 2], rows, True)), [1, 2])

    def test_a_row_is_about_a_function_wherever_it_stands(self):
        head = "namespace a {\n\n"
        files = {
            "there.h": head + "class A {\n  void f(int n) {\n    g(n);  // why\n  }\n};\n\n}\n",
            "moved.cc": head + "int other() { return 1; }\nvoid B::f(int n) { g(n); }\n\n}\n",
            "changed.cc": head + "void B::f(int n) {\n  if (n > 0)\n    g(n);\n}\n\n}\n",
        }
        root = first_notice.TABLE.parent
        for name, text in files.items():
            (root / name).write_text(text)
        codes = ["".join(first_notice.function_of(root, name, "g(n);").split()) for name in files]
        self.assertEqual(codes[0], codes[1])
        self.assertEqual(codes[0], "intn){g(n);}")
        self.assertNotEqual(codes[0], codes[2])

    def test_keys_are_unique(self):
        self.assertEqual(len({first_notice.key_of(bug) for bug in BUGS}), len(BUGS))

    def test_page_counts(self):
        rows = [first_notice.row_of(bug, step, 3) for bug, step in zip(BUGS, self.STEPS)]
        page = first_notice.page(rows, len(rows))
        self.assertIn("quick suite 1 of 3 (33.3 %), by the deep suite only 1, by none 1", page)
        self.assertIn("| a_test | 1 | 3 s | 3 s |", page)
        self.assertIn(f"| {first_notice.key_of(BUGS[1])} | storm | 3 s |", page)

    def test_page_of_some_bugs_has_no_share(self):
        page = first_notice.page([first_notice.row_of(BUGS[0])], len(BUGS))
        self.assertIn(f"1 of {len(BUGS)} bugs", page)
        self.assertNotIn("%", page)


if __name__ == "__main__":
    unittest.main()
