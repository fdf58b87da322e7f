#!/usr/bin/env python3
"""Runs `perdix-bench figure tips` as a user would, with small indexes: what it writes, what it
refuses.

bench/tests/tips_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "figure", "tips")
PLUGGED = ["tips:hash", "tips:btree"]
SYSTEMS = [*PLUGGED, "volatile:hash", "volatile:btree", "sptree"]
ORDERED = [name for name in SYSTEMS if not name.endswith("hash")]
SIZES = ["256 KiB", "1.00 MiB"]
# More than the cache has room for at least, so that its size matters.
SMALL = (
    "--records", "60k", "--operations", "20k", "--threads", "1,2", "--cached", "0,50,100",
    "--log-bytes", "256KiB,1MiB", "--workers", "3",
)


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(PROGRAM, "--systems", ",".join(SYSTEMS), *SMALL)

    def values(self, figure, system, metric):
        return {row["group"]: row[metric] for row in self.rows(figure)
                if row["system"] == system}

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_mixes_by_keys_and_distribution(self):
        wanted = set()
        for name in SYSTEMS:
            mixes = ["a", "b", "c", "d"] + (["e"] if name in ORDERED else [])
            for mix in mixes:
                for choice in ["latest"] if mix == "d" else ["uniform", "zipfian"]:
                    for keys in ("integers", "strings"):
                        for threads in ("1 thread", "2 threads"):
                            wanted.add((f"{mix}, {keys}, {choice}", f"{name}, {threads}"))
        seen = [(row["group"], row["system"]) for row in self.rows("mixes")]
        self.assertEqual(set(seen), wanted)
        self.assertEqual(len(seen), len(wanted))
        for row in self.rows("mixes"):
            self.assertGreater(row["throughput"], 0)

    def test_hits_grow_with_the_cache(self):
        for name in PLUGGED:
            hits = self.values("parts", name, "hits")
            for threads in ("1 thread", "2 threads"):
                self.assertGreater(hits[f"get, cached, {threads}"], 0.95)
                self.assertLess(hits[f"get, not cached, {threads}"], 0.5)
            by_size = self.values("cache", name, "hits")
            self.assertLess(by_size["c, 0 %"], by_size["c, 100 %"])

    def test_other_systems_have_no_cache(self):
        for name in ("volatile:btree", "sptree"):
            self.assertEqual(set(self.values("parts", name, "hits").values()), {0})
        for figure in ("cache", "workers", "logs", "undo", "recovery"):
            self.assertEqual({row["system"] for row in self.rows(figure)}, set(PLUGGED))

    def test_workers_replay_writes(self):
        for name in PLUGGED:
            workers = self.values("workers", name, "threads")
            replayed = self.values("workers", name, "writes a replay")
            for group, number in workers.items():
                self.assertLessEqual(number, 3, group)
                if group.startswith("a,"):
                    self.assertGreaterEqual(number, 1, group)
                    self.assertGreater(replayed[group], 0, group)
                if group.startswith("c,"):
                    self.assertEqual(replayed[group], 0, group)

    def test_smaller_logs_are_reclaimed_more_often(self):
        for name in PLUGGED:
            reclamations = self.values("logs", name, "reclamations")
            self.assertEqual(list(reclamations), SIZES)
            self.assertGreater(reclamations[SIZES[0]], reclamations[SIZES[1]])

    def test_skew_saves_undo_records(self):
        for name in PLUGGED:
            saved = self.values("undo", name, "saved")
            written = self.values("undo", name, "written")
            replayed = self.values("undo", name, "replayed")
            for share in saved.values():
                self.assertTrue(0 <= share < 1, saved)
            self.assertLess(replayed["a, zipfian"], replayed["a, uniform"])
            self.assertLess(written["a, zipfian"], written["a, uniform"])

    def test_reopens_after_kill(self):
        for name in PLUGGED:
            first = self.values("recovery", name, "first answer")
            last = self.values("recovery", name, "all replayed")
            self.assertEqual(list(first), [f"logs of {size}" for size in SIZES])
            for group in first:
                self.assertTrue(0 < first[group] <= last[group], group)

    def test_the_text_and_the_page_show_all_figures(self):
        figures = self.report["figures"]
        self.assertEqual(
            list(figures),
            sorted(["mixes", "parts", "workers", "cache", "logs", "undo", "recovery"]),
        )
        self.assertEqual(self.html.count("<svg"), len(figures))
        for figure in figures.values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)

    def test_cleans_up(self):
        self.assertEqual(self.left, {"report.json", "report.html"})


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--figures", "--cached", "--log-bytes", "fig. 11")
    nonsense = (
        ["--records", "0"], ["--operations", "many"], ["--cached", "101"], ["--systems", "nosuch"],
        ["--figures", "fig6"], ["--log-bytes", "1k"], ["--workers", "257"],
        ["--figures", "cache", "--systems", "volatile:btree"],
    )


if __name__ == "__main__":
    unittest.main()
