#!/usr/bin/env python3
"""Runs `perdix-bench figure ordered`, `sptree` and `opening` as a user would, with small indexes.

bench/tests/others_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import Program, RunOnce

BENCH = sys.argv.pop(1)
SMALL = ("--records", "20k", "--operations", "4k")


class Ordered(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(Program(BENCH, "figure", "ordered"), *SMALL)

    def test_phases_and_ratios(self):
        self.assertEqual(self.report["wrong"], 0)
        rows = {(row["group"], row["system"]): row
                for row in self.report["figures"]["ordered"]["rows"]}
        systems = ("sptree", "nbtree", "fastfair", "btree_map", "lmdb")
        phases = ("load", "e", "get", "seek", "scan100", "erase")
        self.assertEqual(list(rows), [(phase, name) for phase in phases for name in systems])
        for (phase, name), row in rows.items():
            for other in ("btree_map", "lmdb"):
                expected = row["throughput"] / rows[phase, other]["throughput"]
                self.assertAlmostEqual(row[f"times {other}"], expected, delta=1e-9 * expected)
            expected = rows["get", name]["throughput"] / row["throughput"]
            self.assertAlmostEqual(row["by get's time"], expected, delta=1e-9 * expected)

    def test_checks_match_rows(self):
        rows = {(row["group"], row["system"]): row
                for row in self.report["figures"]["ordered"]["rows"]}
        values = [check["value"] for check in self.report["checks"]]
        self.assertEqual(values, [
            rows["e", "sptree"]["times btree_map"], rows["e", "nbtree"]["times btree_map"],
            rows["scan100", "sptree"]["times lmdb"], rows["scan100", "nbtree"]["times lmdb"],
            rows["seek", "sptree"]["by get's time"], rows["seek", "nbtree"]["by get's time"],
        ])


class SpTree(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(Program(BENCH, "figure", "sptree"), *SMALL)

    def test_figure_of_each_build(self):
        self.assertEqual(self.report["wrong"], 0)
        instrumented = self.report["build"].endswith("instrumented")
        name = "traffic" if instrumented else "operations"
        self.assertEqual(list(self.report["figures"]), [name])
        rows = self.report["figures"][name]["rows"]
        threads = ("",) if instrumented else (", 1 thread", ", 2 threads")
        self.assertEqual(
            {(row["group"], row["system"]) for row in rows},
            {(phase + number, system) for phase in ("load", "get", "absent", "scan100")
             for number in threads for system in ("sptree", "sptree+buffers", "fastfair")},
        )
        for row in rows:
            if instrumented:
                self.assertEqual(row["media written"] > 0, row["group"] == "load", row)
            else:
                self.assertGreater(row["stored of a pair"], 8)
                if row["system"] == "fastfair":
                    self.assertEqual(row["times fastfair"], 1)


class Opening(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(Program(BENCH, "figure", "opening"), "--systems", "nbtree,cceh,btree_map",
                     "--pairs", "3000,9000")

    def test_each_size_of_what_survives(self):
        self.assertEqual(self.report["wrong"], 0)
        rows = {(row["group"], row["system"]): row
                for row in self.report["figures"]["opening"]["rows"]}
        groups = ("3,000 pairs", "9,000 pairs")
        self.assertEqual(set(rows), {(g, name) for g in groups for name in ("nbtree", "cceh")})
        for (group, name), row in rows.items():
            self.assertGreater(row["first answer"], 0)
            self.assertGreaterEqual(row["all back"], row["first answer"])
            expected = row["first answer"] / rows[groups[0], name]["first answer"]
            self.assertAlmostEqual(row["times first"], expected, delta=1e-9 * expected)


if __name__ == "__main__":
    unittest.main()
