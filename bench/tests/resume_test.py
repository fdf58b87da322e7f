#!/usr/bin/env python3
"""Runs `perdix-bench special resume` as a user would, with small indexes: what it writes, what it
refuses.

bench/tests/resume_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "special", "resume")
KEYS = [2000, 30000]
WITHIN = [1, 5, 20, 100]


class Restarts(RunOnce):
    """Runs with `repeat` restarts of each kind."""

    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM,
            "--keys", ",".join(map(str, KEYS)), "--within", ",".join(map(str, WITHIN)),
            "--repeat", str(cls.repeat),
        )


def keys_of(row):
    return int(row["group"].removesuffix(" keys").replace(",", ""))


class Report(Restarts, unittest.TestCase):
    repeat = 2

    def test_kills_after_each_size(self):
        for figure in ("rebuild", "first_answer", "answers"):
            rows = self.rows(figure)
            self.assertEqual(len(rows), 2 * len(KEYS))
            for row, keys in zip(rows, [keys for keys in KEYS for _ in range(2)]):
                self.assertGreaterEqual(keys_of(row), keys)
        self.assertEqual(
            [row["system"] for row in self.rows("rebuild")], ["no buffers", "all buffers"] * 2
        )

    def test_nothing_is_lost(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_rebuilds_an_idle_index(self):
        for row in self.rows("rebuild"):
            self.assertGreater(row["first answer"], 0)
            self.assertGreater(row["all back"], 0)
            self.assertGreaterEqual(row["leaves"], keys_of(row) // 128)
            self.assertGreater(row["DRAM"], 0)
            self.assertGreater(row["keys"], 0)

    def test_both_logs_hold_what_the_buffers_held(self):
        rows = self.rows("first_answer")
        for structured, plain in zip(rows[::2], rows[1::2]):
            self.assertEqual(structured["group"], plain["group"])
            self.assertEqual(structured["system"], "structured log")
            self.assertEqual(plain["system"], "plain log")
            self.assertEqual(structured["times structured"], 1)
            records, rest = divmod(plain["log"], 32)
            self.assertEqual(rest, 0)
            self.assertTrue(0 < records < keys_of(plain))
            self.assertGreaterEqual(structured["log"], plain["log"])

    def test_answer_counts_ascend(self):
        rows = self.rows("answers")
        for row in rows:
            counts = [row[f"{moment} ms"] for moment in WITHIN]
            self.assertEqual(counts, sorted(counts))
        for line, row in zip(self.report["figures"]["answers"]["lines"], rows):
            self.assertEqual(line["points"], [[m, row[f"{m} ms"]] for m in WITHIN])

    def test_the_text_and_the_page_show_the_same(self):
        for row in self.rows("rebuild") + self.rows("answers"):
            self.assertIn(row["group"], self.done.stdout)
            self.assertIn(row["group"], self.html)
        self.assertEqual(self.html.count("<svg"), 3)
        self.assertTrue(self.html.rstrip().endswith("</html>"))

    def test_shows_progress_and_cleans_up(self):
        self.assertIn("load and kill", self.done.stderr)
        self.assertIn("restart", self.done.stderr)
        self.assertEqual(self.left, {"report.json", "report.html"})


class OneRestart(Restarts, unittest.TestCase):
    """Of which no median is taken, so that the figures of a restart belong together."""

    repeat = 1

    def test_counts_begin_with_the_first_answer(self):
        for first, answers in zip(self.rows("first_answer"), self.rows("answers")):
            for moment in WITHIN:
                answered = first["first answer"] <= moment * 1e6
                self.assertEqual(answers[f"{moment} ms"] > 0, answered, (first, answers))

    def test_rate_of_keys_matches_times(self):
        for row in self.rows("rebuild"):
            self.assertAlmostEqual(row["keys"] * row["all back"] / 1e9, keys_of(row), delta=1)


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--keys", "--within", "SIGKILL")
    nonsense = (
        ["--keys", "0"], ["--keys", "-5"], ["--keys", "many"], ["--keys", "2M,1M"],
        ["--keys", "1M,1M"], ["--keys", "1000G"], ["--keys", ""], ["--within", "0"],
        ["--within", "10,5"], ["--within", "1,2,x"], ["--threads", "100000"],
        ["--load-threads", "0"], ["--json", "/no/such/place/r.json", "--keys", "2k"],
    )


if __name__ == "__main__":
    unittest.main()
