#!/usr/bin/env python3
"""Runs `perdix-bench special nbtree` and `special alloc` as a user would, with small indexes.

bench/tests/special_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

BENCH = sys.argv.pop(1)
PROGRAM = Program(BENCH, "special", "nbtree")
ALLOC = Program(BENCH, "special", "alloc")
SYSTEMS = ["nbtree", "btree_map"]
THETAS = [0.5, 1.2]
WRITES = [0, 50]


def listed(values):
    return ",".join(map(str, values))


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(
            PROGRAM,
            "--systems", listed(SYSTEMS), "--records", "20k", "--operations", "4k",
            "--thetas", listed(THETAS), "--writes", listed(WRITES), "--threads", "1,2",
            "--repeat", "2",
        )

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

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

    def test_allocators_share_the_same_inserts(self):
        rows = {row["system"]: row for row in self.rows("allocator")}
        self.assertLessEqual({"Calloc", "naive"}, set(rows))
        self.assertLessEqual(set(rows), {"Calloc", "naive", "libpmemobj"})
        for row in rows.values():
            self.assertGreaterEqual(row["allocator"], 0)
            # No more than one insert of ten replaces a leaf.
            self.assertGreaterEqual(row["modification"], 10 * row["allocator"])

    def test_the_text_and_the_page_show_all_figures(self):
        self.assertEqual(self.html.count("<svg"), 2)
        for figure in self.report["figures"].values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)

    def test_shows_progress_and_cleans_up(self):
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

    def test_ratios_match_throughputs(self):
        rows = self.report["figures"]["skew"]["rows"]
        for row in rows:
            ratio = row["throughput"] / rows[0]["throughput"]
            self.assertAlmostEqual(row["to 1 thread"], ratio, delta=1e-9 * ratio)

    def test_allocators_differ_by_their_own_time_only(self):
        rows = self.report["figures"]["allocator"]["rows"]
        told = [row for row in rows if row["throughput"] != 0]
        self.assertIn(len(told), {0, len(rows)})  # 0: too busy a machine to tell
        others = [1e9 / row["throughput"] - row["allocator"] for row in told]
        for other in others:
            self.assertGreater(other, 0)
            self.assertAlmostEqual(other, others[0], delta=1e-6 * others[0])


class Alloc(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(ALLOC, "--operations", "20k")

    def test_times_of_each_pattern_and_number_of_threads(self):
        rows = self.report["figures"]["alloc"]["rows"]
        systems = ("malloc", "Calloc, eADR", "Calloc, ADR", "libpmemobj")
        self.assertEqual(
            [(row["group"], row["system"]) for row in rows],
            [(f"{pattern}, {threads}", system)
             for threads in ("1 thread", "2 threads")
             for pattern in ("pair of 64 B", "pair of 1120 B", "fifo")
             for system in systems],
        )
        for row in rows:
            self.assertGreater(row["time"], 0)

    def test_cleans_up(self):
        self.assertEqual(self.left, {"report.json", "report.html"})


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--figures", "--thetas", "--records")
    nonsense = (
        ["--records", "0"], ["--records", "many"], ["--thetas", "0"], ["--thetas", "0.9,0.5"],
        ["--thetas", "2"], ["--writes", "101"], ["--figures", "fig6"], ["--systems", "nosuch"],
        ["--pool", "/no/such/place"], ["--json", "/no/such/place/r.json"],
    )


class Names(unittest.TestCase):
    def test_lists_specials(self):
        for options in ((), ("--help",)):
            done = Program(BENCH, "special").run(*options)
            self.assertEqual(done.returncode, 0)
            for name in ("alloc", "elf", "nbtree", "resume"):
                self.assertRegex(done.stdout, rf"(?m)^  {name} ")

    def test_refuses_unknown_names(self):
        done = Program(BENCH, "special").run("nosuch")
        self.assertEqual(done.returncode, 2)
        self.assertIn("perdix-bench special", done.stderr)


if __name__ == "__main__":
    unittest.main()
