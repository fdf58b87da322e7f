#!/usr/bin/env python3
"""Runs nbtree_bench as a user would, with small indexes: what it writes, what it refuses.

bench/nbtree/nbtree_bench_test.py PATH_OF_NBTREE_BENCH [unittest arguments]
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = None
ENGINES = ["nbtree", "btree_map"]
PAIRS = [3000, 9000]
THETAS = [0.5, 1.2]
WRITES = [0, 50]
THREADS = [1, 2]
OPERATIONS = {"get", "insert", "update", "erase"}


def run_bench(*options):
    return subprocess.run([BENCH, *options], capture_output=True, timeout=300, text=True)


def listed(values):
    return ",".join(map(str, values))


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="perdix-nbtree-test-") as scratch:
            paths = {name: Path(scratch) / f"report.{name}" for name in ("json", "html")}
            cls.done = run_bench(
                "--engines", listed(ENGINES), "--records", "20k", "--operations", "4k",
                "--pairs", listed(PAIRS), "--thetas", listed(THETAS), "--writes", listed(WRITES),
                "--threads", listed(THREADS), "--repeat", "2", "--pool", scratch, "--progress",
                "--json", str(paths["json"]), "--html", str(paths["html"]),
            )
            assert cls.done.returncode == 0, cls.done.stderr
            cls.report = json.loads(paths["json"].read_text())
            cls.html = paths["html"].read_text()
            cls.left = {path.name for path in Path(scratch).iterdir()}

    def rows(self, figure):
        return self.report["figures"][figure]["rows"]

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_latencies_of_each_operation_and_contender(self):
        seen = {(row["group"], row["contender"]) for row in self.rows("latency")}
        self.assertEqual(seen, {(operation, name) for operation in OPERATIONS for name in ENGINES})
        for row in self.rows("latency"):
            self.assertGreater(row["mean"], 0)
            self.assertLessEqual(row["p50"], row["p99"])
            self.assertLessEqual(row["p99"], row["p99.9"])

    def test_domains_are_those_of_pools(self):
        seen = {row["contender"] for row in self.rows("domain")}
        self.assertEqual(seen, {"nbtree, eADR", "nbtree, ADR"})
        self.assertEqual(len(self.rows("domain")), 2 * len(OPERATIONS))

    def test_a_pair_takes_what_it_must(self):
        self.assertEqual(len(self.rows("space")), len(PAIRS) * len(ENGINES))
        for row in self.rows("space"):
            if row["contender"] == "nbtree":
                self.assertGreaterEqual(row["PM"], 16)
                self.assertGreater(row["DRAM"], 0)
            else:
                self.assertEqual(row["PM"], 0)
                self.assertGreaterEqual(row["DRAM"], 16)

    def test_each_skew_with_each_share_of_writes(self):
        wanted = {
            (f"theta {theta}, {writes} % writes", f"{name}, {threads} thread{'s'[: threads - 1]}")
            for theta in THETAS for writes in WRITES for name in ENGINES for threads in THREADS
        }
        seen = {(row["group"], row["contender"]) for row in self.rows("skew")}
        self.assertEqual(seen, wanted)
        for row in self.rows("skew"):
            self.assertGreater(row["throughput"], 0)

    def test_allocators_by_what_they_take_of_the_same_inserts(self):
        rows = {row["contender"]: row for row in self.rows("allocator")}
        self.assertLessEqual({"Calloc", "naive"}, set(rows))
        self.assertLessEqual(set(rows), {"Calloc", "naive", "libpmemobj"})
        for row in rows.values():
            self.assertGreaterEqual(row["allocator"], 0)
            # No more than one insert of ten replaces a leaf.
            self.assertGreaterEqual(row["modification"], 10 * row["allocator"])
            self.assertGreater(1e9 / row["throughput"], row["allocator"])
        self.assertGreater(rows["Calloc"]["allocator"], rows["naive"]["allocator"])

    def test_the_text_and_the_page_show_all_figures(self):
        self.assertEqual(self.html.count("<svg"), 5)
        self.assertTrue(self.html.rstrip().endswith("</html>"))
        for figure in self.report["figures"].values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)

    def test_tells_where_it_is_and_cleans_up(self):
        self.assertIn("nbtree load", self.done.stderr)
        self.assertEqual(self.left, {"report.json", "report.html"})


class Options(unittest.TestCase):
    def test_help_teaches(self):
        done = run_bench("--help")
        self.assertEqual(done.returncode, 0)
        for expected in ("--figures", "--pairs", "--records", "Examples", "Exit status"):
            self.assertIn(expected, done.stdout)

    def test_refuses_nonsense(self):
        for options in (
            ["--records", "0"], ["--records", "many"], ["--records", "10", "--operations", "20"],
            ["--pairs", "2M,1M"], ["--pairs", "0"], ["--thetas", "0"], ["--thetas", "0.9,0.5"],
            ["--thetas", "2"], ["--writes", "101"], ["--threads", "0"], ["--repeat", "0"],
            ["--figures", "fig6"], ["--engines", "nosuch"], ["--pool", "/no/such/place"],
            ["--json", "/no/such/place/r.json"], ["--frobnicate"], ["surplus"],
        ):
            done = run_bench(*options)
            self.assertEqual(done.returncode, 2, (options, done.stderr))
            self.assertEqual(done.stdout, "", options)
            self.assertNotEqual(done.stderr.strip(), "", options)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
