#!/usr/bin/env python3
"""Runs resume_bench as a user would, with small indexes: what it writes, what it refuses.

bench/resume/resume_bench_test.py PATH_OF_RESUME_BENCH [unittest arguments]
"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1))
KEYS = [2000, 30000]
WITHIN = [1, 5, 20, 100]
REPEAT = 2


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM,
            "--keys", ",".join(map(str, KEYS)), "--within", ",".join(map(str, WITHIN)),
            "--repeat", str(REPEAT),
        )

    def test_every_size_was_killed_beyond_it(self):
        for rows, kinds in (("rebuild", 2), ("service", 1)):
            wanted = [keys for keys in KEYS for _ in range(kinds)]
            self.assertEqual(len(self.report[rows]), len(wanted))
            for row, keys in zip(self.report[rows], wanted):
                self.assertGreaterEqual(row["keys"], keys)
        self.assertEqual([row["buffers"] for row in self.report["rebuild"]], ["none", "all"] * 2)

    def test_nothing_is_lost(self):
        self.assertEqual(self.report["lost"], 0)
        for row in self.report["rebuild"]:
            self.assertEqual([r["lost"] for r in row["rounds"]], [0] * REPEAT)

    def test_an_index_that_is_left_alone_comes_back(self):
        for row in self.report["rebuild"]:
            for measured in row["rounds"]:
                self.assertGreater(measured["first_answer_seconds"], 0)
                self.assertGreater(measured["rebuilt_seconds"], 0)
                self.assertGreaterEqual(measured["leaves"], row["keys"] // 128)
                self.assertGreater(measured["dram_bytes"], 0)
            self.assertAlmostEqual(
                row["keys_per_second"] * row["rebuilt_seconds"], row["keys"], delta=1
            )

    def test_both_logs_hold_what_the_buffers_held(self):
        for row in self.report["service"]:
            self.assertGreater(row["live_records"], 0)
            self.assertLess(row["live_records"], row["keys"])
            live = 32 * row["live_records"]
            self.assertEqual(row["plain_log"]["log_bytes"], live)
            self.assertGreaterEqual(row["structured_log"]["log_bytes"], live)

    def test_answers_only_become_more(self):
        for row in self.report["service"]:
            for log in ("structured_log", "plain_log"):
                self.assertEqual(len(row[log]["rounds"]), REPEAT)
                for counts in [r["answers"] for r in row[log]["rounds"]] + [row[log]["answers"]]:
                    self.assertEqual(len(counts), len(WITHIN))
                    self.assertEqual(counts, sorted(counts))

    def test_counts_begin_with_the_first_answer(self):
        for row in self.report["service"]:
            for log in ("structured_log", "plain_log"):
                for measured in row[log]["rounds"]:
                    for moment, count in zip(WITHIN, measured["answers"]):
                        answered = measured["first_answer_seconds"] * 1000 <= moment
                        self.assertEqual(count > 0, answered, measured)

    def test_the_text_and_the_page_show_the_same(self):
        for keys in {row["keys"] for rows in ("rebuild", "service") for row in self.report[rows]}:
            self.assertIn(f"{keys:,}", self.done.stdout)
            self.assertIn(f"{keys:,}", self.html)
        self.assertEqual(self.html.count("<svg"), 3)
        self.assertTrue(self.html.rstrip().endswith("</html>"))

    def test_tells_where_it_is_and_cleans_up(self):
        self.assertIn("load and kill", self.done.stderr)
        self.assertIn("restart", self.done.stderr)
        self.assertEqual(self.left, {"report.json", "report.html"})


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
