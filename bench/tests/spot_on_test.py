#!/usr/bin/env python3
"""Runs `perdix-bench figure spot_on` as a user would, with small indexes: what it writes, what it
refuses.

bench/tests/spot_on_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import sys
import unittest

from bench_program import CommandLine, Program, RunOnce

PROGRAM = Program(sys.argv.pop(1), "figure", "spot_on")
INDEXES = ["cceh", "fastfair", "skiplist"]
FORMS = [index + form for index in INDEXES for form in ("", "+b", "+bo", "+boc")]
# Forms that perdix has for certain.
SURE = ["cceh", "cceh+b", "cceh+bo", "fastfair", "skiplist", "skiplist+b", "skiplist+bo"]
THREADS = ["1 thread", "2 threads"]
SMALL = ("--records", "20k", "--reads", "10k", "--threads", "1,2")


def index_of(system):
    return system.partition(",")[0].partition("+")[0]


def of_dimms(row):
    return ", DIMMs" in row["system"]


class Report(RunOnce, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_once(PROGRAM, *SMALL, "--repeat", "2")
        cls.instrumented = cls.report["build"].endswith("instrumented")
        cls.systems = cls.report["config"]["systems"]

    def ours(self, figure):
        return [row for row in self.rows(figure) if not of_dimms(row)]

    def need(self, instrumented):
        if self.instrumented != instrumented:
            self.skipTest("of the other builds")

    def expect_ours(self, figure, wanted):
        seen = [(row["group"], row["system"]) for row in self.ours(figure)]
        self.assertEqual(set(seen), set(wanted))
        self.assertEqual(len(seen), len(set(seen)))

    def by_threads(self):
        return [(f"{index_of(name)}, {threads}", name)
                for name in self.systems for threads in THREADS]

    def expect_ratios(self, figure, metric):
        """The ratio is to the plain index in the same group; that of the DIMMs, to the DIMMs."""
        rows = {(row["group"], row["system"]): row for row in self.rows(figure)}
        for (group, system), row in rows.items():
            plain = index_of(system) + (", DIMMs" if of_dimms(row) else "")
            expected = row[metric] / rows[group, plain][metric]
            # Of two rounds each value is a median.
            self.assertAlmostEqual(row["of plain"], expected, delta=0.5 * expected, msg=system)
            if system == plain:
                self.assertEqual(row["of plain"], 1)

    def test_every_answer_is_right(self):
        self.assertEqual(self.report["wrong"], 0)

    def test_runs_available_forms_and_names_missing_ones(self):
        self.assertEqual(self.systems, [name for name in FORMS if name in self.systems])
        for name in SURE:
            self.assertIn(name, self.systems)
        missing = [name for name in FORMS if name not in self.systems]
        lines = [line for line in self.done.stdout.splitlines() if line.startswith("not there")]
        expected = f"not there, so left out: {', '.join(missing)}"
        self.assertEqual(lines, [expected] if missing else [])

    def test_figures_of_each_build(self):
        wanted = ({"buffers", "traffic", "budget_traffic", "cceh"} if self.instrumented
                  else {"throughput", "latency", "budgets"})
        self.assertEqual(set(self.report["figures"]), wanted)

    def test_buffers(self):
        self.need(instrumented=True)
        names = [name for name in self.systems if name.partition("+")[2] in ("", "b")]
        self.expect_ours("buffers", [(index_of(name), name) for name in names])
        written = {row["system"]: row["media written"] for row in self.ours("buffers")}
        self.assertLess(written["cceh+b"], written["cceh"] / 2)
        self.expect_ratios("buffers", "media written")

    def test_traffic(self):
        self.need(instrumented=True)
        without_log = [(group, f"{name}, no log") for group, name in self.by_threads()
                       if "+" in name]
        self.expect_ours("traffic", self.by_threads() + without_log)
        rows = {(row["group"], row["system"]): row for row in self.ours("traffic")}
        for group, name in without_log:
            logged = rows[group, name.partition(",")[0]]
            self.assertLess(rows[group, name]["fences"], logged["fences"] - 0.8)  # a record's
        for row in rows.values():
            for metric in ("media written", "media read", "flushes", "fences"):
                self.assertGreater(row[metric], 0, (row, metric))
        self.expect_ratios("traffic", "media written")

    def test_throughput(self):
        self.need(instrumented=False)
        self.expect_ours("throughput", self.by_threads())
        for row in self.rows("throughput"):
            self.assertGreater(row["throughput"], 0)

    def test_budgets_between_none_and_all(self):
        figure, metric = (("budget_traffic", "media written") if self.instrumented
                          else ("budgets", "throughput"))
        budgets = ["none", "10 %", "25 %", "50 %", "75 %", "all"]
        self.expect_ours(figure, [(f"{name}, {threads}", budget) for name in self.systems
                                  if name.endswith("+b") for threads in THREADS
                                  for budget in budgets])
        for row in self.rows(figure):
            self.assertGreater(row[metric], 0)
            if not self.instrumented and row["system"] == "none":
                self.assertEqual(row["budget"], 0)

    def test_published_rows_of_dimms(self):
        figure, metric, published = (
            ("traffic", "media written", {"fastfair, DIMMs": 813.1, "cceh+b, DIMMs, log": 275.7})
            if self.instrumented else
            ("throughput", "throughput", {"fastfair, DIMMs": 498904, "cceh+b, DIMMs": 1165527}))
        dimms = {row["system"]: row for row in self.rows(figure) if of_dimms(row)}
        for system, value in published.items():
            self.assertEqual(dimms[system][metric], value)
        for row in dimms.values():
            self.assertTrue(row["group"].endswith(", 1 thread"), row)
            if self.instrumented:
                self.assertIsNone(row["fences"])
        self.assertNotIn("skiplist", {index_of(name) for name in dimms})

    def test_latencies(self):
        self.need(instrumented=False)
        wanted = [(f"{index_of(name)}, {operation}", name)
                  for name in self.systems for operation in ("insert", "read")]
        self.expect_ours("latency", wanted)
        for row in self.rows("latency"):
            self.assertGreater(row["mean"], 0)
            self.assertLessEqual(row["p50"], row["p90"])
            self.assertLessEqual(row["p90"], row["p99"])
            self.assertLessEqual(row["p99"], row["p99.9"])
        lines = self.report["figures"]["latency"]["lines"]
        self.assertEqual({(line["group"], line["system"]) for line in lines}, set(wanted))
        for line in lines:
            bounds = [bound for bound, _ in line["points"]]
            self.assertEqual(bounds, sorted(set(bounds)))
            # Medians of two rounds, each of which adds up to one.
            self.assertAlmostEqual(sum(share for _, share in line["points"]), 1, delta=0.01)

    def test_the_text_and_the_page_show_all_figures(self):
        plots = 1 + 3 + 1 + 1 if self.instrumented else 1 + 1 + 2 * len(INDEXES) + 1
        self.assertEqual(self.html.count("<svg"), plots)
        for figure in self.report["figures"].values():
            self.assertIn(figure["title"], self.done.stdout)
            self.assertIn(figure["title"], self.html)
        self.assertNotRegex(self.html, r"\bnan\b")

    def test_cleans_up(self):
        self.assertEqual(self.left, {"report.json", "report.html"})


class Options(CommandLine, unittest.TestCase):
    program = PROGRAM
    taught = ("--figures", "--budget", "--reads", "fig. 2", "fig. 3", "fig. 4")
    nonsense = (
        ["--records", "0"], ["--reads", "many"], ["--systems", "nosuch"], ["--figures", "fig2"],
        ["--media-unit", "100"], ["--budget", "0"],
        ["--figures", "buffers", "--systems", "cceh+bo"],
        ["--figures", "traffic,throughput"],  # no build has both
    )


if __name__ == "__main__":
    unittest.main()
