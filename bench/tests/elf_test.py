#!/usr/bin/env python3
"""Runs `perdix-bench special elf` as a user would, with a small table: what it writes, what it
refuses.

bench/tests/elf_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "special", "elf")
SYSTEMS = ["scan", "elf", "hybrid", "rtree", "sqlite"]
TYPES = ["exact", "range", "partial"]
SMALL = ("--rows", "3k", "--queries", "50", "--warm-up", "100", "--seconds", "0.01")


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(PROGRAM, "--repeat", "2", *SMALL)

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_each_system_answers_each_type(self):
        seen = [(row["group"], row["system"]) for row in self.rows("methods")]
        wanted = [(group, name) for group in TYPES for name in SYSTEMS]
        wanted += [("build, a row", name) for name in SYSTEMS if name != "scan"]
        self.assertEqual(sorted(seen), sorted(wanted))
        for row in self.rows("methods"):
            self.assertGreater(row["time"], 0)
            if row["system"] == "scan":
                self.assertEqual(row["times scan"], 1)

    def test_policies_beside_none(self):
        names = [row["system"] for row in self.rows("policies") if row["group"] == "exact"]
        self.assertEqual(names[0], "none")
        self.assertEqual(len(set(names)), 9)
        for row in self.rows("policies"):
            self.assertGreater(row["times none"], 0)
            self.assertEqual(row["cache"] > 0, row["system"] != "none", row)

    def test_lines_are_counted_in_an_instrumented_build(self):
        counts = {row["system"]: row for row in self.rows("policies")
                  if row["group"] == "exact"}
        if not self.report["build"].endswith("instrumented"):
            self.assertEqual({row["PM lines"] for row in counts.values()}, {0})
            self.assertEqual({row["modelled"] for row in counts.values()}, {0})
            return
        self.assertGreater(counts["none"]["PM lines"], 1)
        self.assertEqual(counts["none"]["DRAM lines"], 0)
        self.assertLessEqual(counts["hybrid"]["PM lines"], 1)  # of the table itself, not of lists
        self.assertLess(counts["3 levels"]["PM lines"], counts["none"]["PM lines"])
        self.assertLess(counts["hybrid"]["modelled"], counts["none"]["modelled"])

    def test_shares_of_the_table(self):
        groups = [row["group"] for row in self.rows("selectivity")]
        self.assertEqual(len(set(groups)), 4)

    def test_page_and_files(self):
        self.assertIn("<svg", self.html)
        self.assertEqual(self.left, {"report.json", "report.html"})


class Lines(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("methods", "policies", "selectivity", "sqlite", "--rows")
    nonsense = (
        ["--figures", "none"], ["--systems", "oracle"], ["--rows", "0"], ["--queries", "0"],
        ["--seconds", "0"], ["--rows", "many"],
    )

    def test_refuses_nonsense(self):
        for options in (["--pool-dir", "/no/such/place"], ["--repeat", "0"], ["--frobnicate"],
                        ["surplus"], *self.nonsense):
            done = self.program.run(*options)
            self.assertEqual(done.returncode, 2, (options, done.stderr))
            self.assertEqual(done.stdout, "", options)
            self.assertNotEqual(done.stderr.strip(), "", options)


if __name__ == "__main__":
    unittest.main()
