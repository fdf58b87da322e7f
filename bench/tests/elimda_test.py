#!/usr/bin/env python3
"""Runs `perdix-bench figure elimda` as a user would, with small indexes: what it writes, what it
refuses.

bench/tests/elimda_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "figure", "elimda")
HASH_TABLES = ["tbb", "libcuckoo", "xenium", "flat_map", "tkrzw"]
SYSTEMS = ["nbtree", *HASH_TABLES]
PAIRS = [3000, 9000]
SIZES = [16, 100]
SMALL = (
    "--start", "1k", "--records", "12k", "--operations", "4k", "--pairs", "3000,9000",
    "--value-size", "16,100", "--threads", "1,2", "--samples", "3",
)


def instrumented(report):
    return report["build"].endswith("instrumented")


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(PROGRAM, "--systems", ",".join(SYSTEMS), "--repeat", "2", *SMALL)

    def threads_of(self, name):
        return ("1 thread",) if name == "flat_map" else ("1 thread", "2 threads")

    def expect_rows(self, figure, groups_of):
        """Each system has its groups, with each number of threads that it is for."""
        wanted = {
            (group, f"{name}, {threads}")
            for name in SYSTEMS for group in groups_of(name) for threads in self.threads_of(name)
        }
        seen = [(row["group"], row["system"]) for row in self.rows(figure)]
        self.assertEqual(set(seen), wanted)
        self.assertEqual(len(seen), len(wanted))
        for row in self.rows(figure):
            self.assertGreater(row["throughput"], 0)
            self.assertGreater(row["scaling"], 0)
            if row["system"].endswith(", 1 thread"):
                self.assertEqual(row["scaling"], 1)

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_prints_durability_of_each_system(self):
        durability = {c["name"]: c["durability"] for c in self.report["systems"]}
        persistent = {"nbtree", "tkrzw"}
        self.assertEqual(
            durability,
            {name: "persistent" if name in persistent else "volatile" for name in SYSTEMS},
        )
        for name in SYSTEMS:
            self.assertRegex(self.done.stdout, rf"(?m)^{name} +{durability[name]} ")

    def test_operations_by_distribution(self):
        def groups(name):
            lookups = ["get", "batch", "absent"] + ([] if name == "xenium" else ["update"])
            return ["insert", "erase"] + [
                f"{operation}, {distribution}"
                for operation in lookups for distribution in ("uniform", "zipfian")
            ]
        self.expect_rows("operations", groups)

    def test_mixes(self):
        self.expect_rows(
            "mixes", lambda name: ["d", "f (paper)"] + ([] if name == "xenium" else ["a", "b", "f"])
        )

    def test_values(self):
        self.expect_rows("values", lambda name: [f"{size} B" for size in SIZES])

    def test_latencies(self):
        seen = {(row["group"], row["system"]) for row in self.rows("latency")}
        operations = {"insert", "get", "absent", "erase"}
        self.assertEqual(seen, {(op, name) for op in operations for name in SYSTEMS})
        for row in self.rows("latency"):
            self.assertGreater(row["mean"], 0)
            self.assertLessEqual(row["p50"], row["p99"])
            self.assertLessEqual(row["p99"], row["p99.9"])

    def test_domains_of_pools(self):
        seen = {row["system"] for row in self.rows("domain")}
        self.assertEqual(
            seen,
            {f"nbtree, {domain}, {threads}"
             for domain in ("eADR", "ADR") for threads in ("1 thread", "2 threads")},
        )

    def test_bytes_of_a_pair(self):
        self.assertEqual(len(self.rows("space")), len(PAIRS) * len(SYSTEMS))
        for row in self.rows("space"):
            stores = row["system"] in ("nbtree", "tkrzw")
            self.assertGreaterEqual(row["stored"], 16 if stores else 0)
            self.assertEqual(row["stored"] == 0, not stores, row)
            # TBB's allocator keeps memory, so its growth may be none.
            if not stores and row["system"] != "tbb":
                self.assertGreaterEqual(row["DRAM"], 16, row)

    def test_load_factors_are_shares(self):
        rows = self.rows("load_factor")
        self.assertEqual({row["system"] for row in rows}, {"libcuckoo", "flat_map"})
        self.assertEqual(
            {row["group"] for row in rows},
            {"4,000 pairs", "8,000 pairs", "12,000 pairs", "average"},
        )
        for row in rows:
            self.assertGreater(row["load factor"], 0)
            self.assertLessEqual(row["load factor"], 1)

    def test_reopens_persistent_systems(self):
        rows = self.rows("recovery")
        self.assertEqual(
            [row["system"] for row in rows], ["nbtree", "tkrzw"] * len(PAIRS)
        )
        for row in rows:
            self.assertGreater(row["first answer"], 0)
            self.assertLessEqual(row["first answer"], row["all back"])
            self.assertGreater(row["pairs"], 0)

    def test_traffic_of_indexes_in_pools(self):
        if not instrumented(self.report):
            self.skipTest("a build without instruments")
        rows = self.rows("traffic")
        operations = {"insert", "get", "absent", "update", "erase"}
        self.assertEqual(
            {(row["group"], row["system"]) for row in rows},
            {(op, f"nbtree, {platform}") for op in operations for platform in ("eADR", "ADR")},
        )
        for row in rows:
            writes = row["group"] in ("insert", "update", "erase")
            self.assertEqual(row["lines written"] > 0, writes, row)
            if row["group"] != "absent":
                self.assertGreater(row["lines read"], 0.5, row)

    def test_the_text_and_the_page_show_all_figures(self):
        figures = self.report["figures"]
        timed = {"operations", "mixes", "latency", "domain", "space", "values", "load_factor",
                 "recovery"}
        self.assertEqual(
            set(figures), timed | ({"traffic"} if instrumented(self.report) else set())
        )
        self.assertEqual(self.html.count("<svg"), len(figures))
        self.assertTrue(self.html.rstrip().endswith("</html>"))
        for figure in figures.values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)

    def test_shows_progress_and_cleans_up(self):
        self.assertIn("tbb insert", self.done.stderr)
        self.assertEqual(self.left, {"report.json", "report.html"})


class ElimDa(RunOnce, unittest.TestCase):
    """What only ElimDa has."""

    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM, "--systems", "elimda", "--collecting-logs", "64,256",
            "--d-bucket-pairs", "16,32", "--p-bucket-pairs", "64,256", *SMALL,
        )

    def groups(self, figure, system):
        rows = self.report["figures"][figure]["rows"]
        return [row["group"] for row in rows if row["system"] == system]

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_numbers_of_logs_and_sizes_of_buckets(self):
        self.assertEqual(self.groups("logs", "elimda, 1 thread"), ["64 logs", "256 logs"])
        self.assertEqual(
            self.groups("buckets", "elimda"),
            [
                f"{operation}, {bucket}"
                for bucket in ("D-bucket of 256 B", "D-bucket of 512 B",
                               "P-bucket of 1024 B", "P-bucket of 4096 B")
                for operation in ("insert_ahead", "get")
            ],
        )

    def test_inserts_ahead_stand_beside_inserts(self):
        for figure in ("operations", "values"):
            inserts = [row["system"] for row in self.report["figures"][figure]["rows"]
                       if row["group"] in ("insert", "16 B")]
            self.assertEqual(
                sorted(inserts),
                sorted(f"{name}, {threads}" for name in ("elimda", "elimda ahead")
                       for threads in ("1 thread", "2 threads")),
            )


class Refusals(unittest.TestCase):
    def refused(self, *options):
        done = PROGRAM.run(*options, *SMALL)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_refuses_a_figure_without_systems(self):
        message = self.refused("--figures", "recovery", "--systems", "tbb")
        self.assertIn("'recovery'", message)
        self.assertIn("--systems", message)

    def test_refuses_traffic_of_systems_outside_pools(self):
        message = self.refused("--figures", "traffic", "--systems", "tbb")
        self.assertRegex(message, "instrumented build|--systems")


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--figures", "--pairs", "--records", "Exp#11")
    nonsense = (
        ["--records", "0"], ["--records", "many"], ["--pairs", "2M,1M"], ["--pairs", "0"],
        ["--figures", "fig6"], ["--systems", "nosuch"], ["--samples", "0"],
        ["--value-size", "0"], ["--media-unit", "100"], ["--pool", "/no/such/place"],
        ["--json", "/no/such/place/r.json"],
    )


if __name__ == "__main__":
    unittest.main()
