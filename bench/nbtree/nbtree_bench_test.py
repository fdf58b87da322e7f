#!/usr/bin/env python3
"""Runs nbtree_bench as a user would, with small indexes: what it writes, what it refuses.

bench/nbtree/nbtree_bench_test.py PATH_OF_NBTREE_BENCH [unittest arguments]
"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1))
SYSTEMS = ["nbtree", "btree_map"]
PAIRS = [3000, 9000]
THETAS = [0.5, 1.2]
WRITES = [0, 50]
THREADS = [1, 2]
OPERATIONS = {"get", "insert", "update", "erase"}


def listed(values):
    return ",".join(map(str, values))


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM,
            "--systems", listed(SYSTEMS), "--records", "20k", "--operations", "4k",
            "--pairs", listed(PAIRS), "--thetas", listed(THETAS), "--writes", listed(WRITES),
            "--threads", listed(THREADS), "--repeat", "2",
        )

    def rows(self, figure):
        return self.report["figures"][figure]["rows"]

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_latencies_of_each_operation_and_system(self):
        seen = {(row["group"], row["system"]) for row in self.rows("latency")}
        self.assertEqual(seen, {(operation, name) for operation in OPERATIONS for name in SYSTEMS})
        for row in self.rows("latency"):
            self.assertGreater(row["mean"], 0)
            self.assertLessEqual(row["p50"], row["p99"])
            self.assertLessEqual(row["p99"], row["p99.9"])

    def test_domains_are_those_of_pools(self):
        seen = {row["system"] for row in self.rows("domain")}
        self.assertEqual(seen, {"nbtree, eADR", "nbtree, ADR"})
        self.assertEqual(len(self.rows("domain")), 2 * len(OPERATIONS))

    def test_a_pair_takes_what_it_must(self):
        self.assertEqual(len(self.rows("space")), len(PAIRS) * len(SYSTEMS))
        for row in self.rows("space"):
            if row["system"] == "nbtree":
                self.assertGreaterEqual(row["PM"], 16)
                self.assertGreater(row["DRAM"], 0)
            else:
                self.assertEqual(row["PM"], 0)
                self.assertGreaterEqual(row["DRAM"], 16)

    def test_each_skew_with_each_share_of_writes(self):
        wanted = [
            (f"theta {theta}, {writes} % writes", f"{name}, {threads}")
            for theta in THETAS for writes in WRITES for name in SYSTEMS
            for threads in ("1 thread", "2 threads", "2 x 1 thread")
        ]
        seen = [(row["group"], row["system"]) for row in self.rows("skew")]
        self.assertEqual(seen, wanted)
        for row in self.rows("skew"):
            self.assertGreater(row["throughput"], 0)
            self.assertGreater(row["handover"], 0)
            self.assertGreater(row["to 1 thread"], 0)
            if row["system"].endswith(", 1 thread"):
                self.assertEqual(row["to 1 thread"], 1)

    def test_allocators_by_what_they_take_of_the_same_inserts(self):
        rows = {row["system"]: row for row in self.rows("allocator")}
        self.assertLessEqual({"Calloc", "naive"}, set(rows))
        self.assertLessEqual(set(rows), {"Calloc", "naive", "libpmemobj"})
        for row in rows.values():
            self.assertGreaterEqual(row["allocator"], 0)
            # No more than one insert of ten replaces a leaf.
            self.assertGreaterEqual(row["modification"], 10 * row["allocator"])

    def test_conflicts_of_each_form_and_number_of_threads(self):
        forms = ("NBTree", "NBTree-W", "NBTree-WR")
        wanted = [(threads, form) for threads in ("1 thread", "2 threads") for form in forms]
        seen = [(row["group"], row["system"]) for row in self.rows("conflicts")]
        self.assertEqual(seen, wanted)
        for row in self.rows("conflicts"):
            self.assertGreater(row["throughput"], 0)
            self.assertGreaterEqual(row["of a million"], 0)
            if row["group"] == "1 thread":
                self.assertEqual(row["of a million"], 0)

    def test_metadata_in_dram_and_in_pm(self):
        wanted = {
            (f"{operation}, {domain}, {threads}", form)
            for operation in OPERATIONS for domain in ("eADR", "ADR")
            for threads in ("1 thread", "2 threads") for form in ("NBTree", "not decoupled")
        }
        rows = self.rows("decoupled")
        self.assertEqual({(row["group"], row["system"]) for row in rows}, wanted)
        self.assertEqual(len(rows), len(wanted))
        for row in rows:
            self.assertGreater(row["mean"], 0)

    def test_locks_with_each_share_of_writes(self):
        wanted = {
            (f"{writes} % writes, {threads}", form)
            for writes in (80, 20)
            for threads in ("1 thread", "2 threads")
            for form in ("NBTree", "NBTree-W", "NBTree-WR")
        }
        rows = self.rows("locks")
        self.assertEqual({(row["group"], row["system"]) for row in rows}, wanted)
        for row in rows:
            self.assertGreater(row["throughput"], 0)
            self.assertGreater(row["p99"], 0)

    def test_the_text_and_the_page_show_all_figures(self):
        self.assertEqual(self.html.count("<svg"), 8)
        self.assertTrue(self.html.rstrip().endswith("</html>"))
        for figure in self.report["figures"].values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)

    def test_tells_where_it_is_and_cleans_up(self):
        self.assertIn("nbtree load", self.done.stderr)
        self.assertEqual(self.left, {"report.json", "report.html"})


class OneRound(RunOnce, unittest.TestCase):
    """Of which no median is taken, so that the figures of a row belong together."""

    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM,
            "--figures", "allocator,skew", "--systems", "nbtree", "--thetas", "0.9",
            "--writes", "50", "--records", "20k", "--operations", "4k", "--repeat", "1",
        )

    def test_ratios_are_of_the_throughputs_beside_them(self):
        rows = self.report["figures"]["skew"]["rows"]
        for row in rows:
            ratio = row["throughput"] / rows[0]["throughput"]
            self.assertAlmostEqual(row["to 1 thread"], ratio, delta=1e-9 * ratio)

    def test_allocators_differ_by_nothing_but_their_own_time(self):
        rows = self.report["figures"]["allocator"]["rows"]
        told = [row for row in rows if row["throughput"] != 0]
        self.assertIn(len(told), {0, len(rows)})  # 0: too busy a machine to tell
        others = [1e9 / row["throughput"] - row["allocator"] for row in told]
        for other in others:
            self.assertGreater(other, 0)
            self.assertAlmostEqual(other, others[0], delta=1e-6 * others[0])


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--figures", "--pairs", "--records")
    nonsense = (
        ["--records", "0"], ["--records", "many"], ["--records", "10", "--operations", "20"],
        ["--pairs", "2M,1M"], ["--pairs", "0"], ["--thetas", "0"], ["--thetas", "0.9,0.5"],
        ["--thetas", "2"], ["--writes", "101"], ["--figures", "fig6"], ["--systems", "nosuch"],
        ["--pool", "/no/such/place"], ["--json", "/no/such/place/r.json"],
    )


if __name__ == "__main__":
    unittest.main()
