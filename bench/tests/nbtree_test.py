#!/usr/bin/env python3
"""Runs `perdix-bench figure nbtree` as a user would, with small indexes: what it writes, what it
refuses.

bench/tests/nbtree_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "figure", "nbtree")
SYSTEMS = ["nbtree", "btree_map"]
PAIRS = [3000, 9000]
OPERATIONS = {"get", "insert", "update", "erase"}


def listed(values):
    return ",".join(map(str, values))


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM,
            "--systems", listed(SYSTEMS), "--records", "20k", "--operations", "4k",
            "--pairs", listed(PAIRS), "--threads", "1,2", "--repeat", "2",
        )

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_latencies_of_each_operation_and_system(self):
        seen = {(row["group"], row["system"]) for row in self.rows("latency")}
        self.assertEqual(seen, {(operation, name) for operation in OPERATIONS for name in SYSTEMS})
        for row in self.rows("latency"):
            self.assertGreater(row["mean"], 0)
            self.assertLessEqual(row["p50"], row["p99"])
            self.assertLessEqual(row["p99"], row["p99.9"])

    def test_domains_of_pools(self):
        seen = {row["system"] for row in self.rows("domain")}
        self.assertEqual(seen, {"nbtree, eADR", "nbtree, ADR"})
        self.assertEqual(len(self.rows("domain")), 2 * len(OPERATIONS))

    def test_bytes_of_a_pair(self):
        self.assertEqual(len(self.rows("space")), len(PAIRS) * len(SYSTEMS))
        for row in self.rows("space"):
            if row["system"] == "nbtree":
                self.assertGreaterEqual(row["PM"], 16)
                self.assertGreater(row["DRAM"], 0)
            else:
                self.assertEqual(row["PM"], 0)
                self.assertGreaterEqual(row["DRAM"], 16)

    def test_conflicts_of_each_form_and_number_of_threads(self):
        forms = ("nbtree:counted", "nbtree:w", "nbtree:wr")
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
            for threads in ("1 thread", "2 threads") for form in ("nbtree:plain", "nbtree:coupled")
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
            for form in ("nbtree:plain", "nbtree:w", "nbtree:wr")
        }
        rows = self.rows("locks")
        self.assertEqual({(row["group"], row["system"]) for row in rows}, wanted)
        for row in rows:
            self.assertGreater(row["throughput"], 0)
            self.assertGreater(row["p99"], 0)

    def test_figures_beside_other_indexes(self):
        figures = self.report["figures"]
        for name, groups in (
            ("operations", ("load", "get", "insert", "update", "erase")), ("mix", ("a",)),
            ("values", ("64 B", "1024 B")), ("mix_domain", ("load", "a")), ("dram", ("a",)),
        ):
            wanted = {f"{group}, {threads}" for group in groups
                      for threads in ("1 thread", "2 threads")}
            self.assertEqual({row["group"] for row in figures[name]["rows"]}, wanted)
        self.assertEqual(
            {row["system"] for row in figures["mix_domain"]["rows"]},
            {"nbtree, eADR", "nbtree, ADR"},
        )
        self.assertEqual(
            {row["system"] for row in figures["dram"]["rows"]},
            {"nbtree", "btree_map", "volatile:btree"},
        )
        for row in figures["mix_domain"]["rows"]:
            if row["system"] == "nbtree, ADR":
                self.assertEqual(row["times ADR"], 1)
        (restart,) = figures["restart"]["rows"]
        self.assertTrue(0 < restart["first answer"] <= restart["all back"])

    def test_the_text_and_the_page_show_all_figures(self):
        # One plot for each, and three for the counts of an instrumented build.
        figures = self.report["figures"]
        self.assertEqual(self.html.count("<svg"), len(figures) + 2 * ("lines" in figures))
        self.assertTrue(self.html.rstrip().endswith("</html>"))
        for figure in self.report["figures"].values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)

    def test_shows_progress_and_cleans_up(self):
        self.assertIn("nbtree load", self.done.stderr)
        self.assertEqual(self.left, {"report.json", "report.html"})


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--figures", "--pairs", "--records")
    nonsense = (
        ["--records", "0"], ["--records", "many"], ["--operations", "0"], ["--pairs", "2M,1M"],
        ["--pairs", "0"], ["--writes", "101"], ["--figures", "fig6"], ["--systems", "nosuch"],
        ["--pool", "/no/such/place"], ["--json", "/no/such/place/r.json"],
    )


if __name__ == "__main__":
    unittest.main()
