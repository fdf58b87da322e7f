#!/usr/bin/env python3
"""Runs `perdix-bench figure disk` as a user would, with few operations.

bench/tests/disk_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "figure", "disk")
SYSTEMS = ["sptree", "plain_log", "lmdb", "sqlite"]
SMALL = ("--operations", "200", "--preload", "200", "--threads", "1,2", "--value-size", "5000")
THREADS = ("1 thread", "2 threads")


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(PROGRAM, "--systems", ",".join(SYSTEMS), *SMALL)

    def groups(self, figure):
        return {(row["group"], row["system"]) for row in self.rows(figure)}

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_every_system_has_every_group(self):
        phases = ("insert", "update")
        for figure in ("integers", "stalls"):
            self.assertEqual(self.groups(figure), {
                (f"{phase}, {threads}", system)
                for phase in phases for threads in THREADS for system in SYSTEMS})
        self.assertEqual(self.groups("strings"), {
            (f"{phase}, 5000 bytes, {threads}", system)
            for phase in phases for threads in THREADS for system in SYSTEMS})

    def test_all_survive_a_power_failure(self):
        settings = {system["name"]: system["settings"] for system in self.report["systems"]}
        said = {"sptree": "durability power", "plain_log": "fdatasync for each",
                "lmdb": "synced at each commit", "sqlite": "synchronous full"}
        for system, words in said.items():
            self.assertIn(words, settings[system])

    def test_compares_with_the_log(self):
        log = {row["group"]: row["throughput"] for row in self.rows("integers")
               if row["system"] == "plain_log"}
        for row in self.rows("integers"):
            self.assertAlmostEqual(row["times the log"], row["throughput"] / log[row["group"]])

    def test_times_each_write(self):
        """A percentile that needs more samples than one operation in 32 would give."""
        for row in self.rows("stalls"):
            self.assertLessEqual(row["p99"], row["p99.9"])
        slower = [row for row in self.rows("stalls") if row["p99"] < row["p99.9"]]
        self.assertTrue(slower)

    def test_plots_all_times(self):
        self.assertEqual(self.html.count("<polyline"), 2 * len(THREADS) * len(SYSTEMS))

    def test_leaves_nothing(self):
        self.assertEqual(self.left, {"report.json", "report.html"})


class Line(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--pool-dir", "--preload")
    nonsense = (["--figures", "nosuch"], ["--systems", "nosuch"], ["--preload", "0"])


if __name__ == "__main__":
    unittest.main()
