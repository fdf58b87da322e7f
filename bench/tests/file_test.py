#!/usr/bin/env python3
"""Runs `perdix-bench figure` with files of its own: what a file may say, and what is told of one
that is wrong.

bench/tests/file_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import json
import sys
import tempfile
import unittest
from pathlib import Path

from bench_program import Program

PROGRAM = Program(sys.argv.pop(1), "figure")
FIGURES = Path(__file__).resolve().parents[1] / "figures"

RIGHT = """title = "A small file"
systems = ["btree_map", "std_map"]

[settings]
records = { value = "2k", min = 1, about = "Records" }
operations = { value = 1000, about = "Operations of a phase" }
threads = { values = [1, 2], about = "Numbers of threads" }

[[figure]]
name = "gets"
title = "Gets"
columns = ["throughput", { name = "scaling", of = "throughput", to = { threads = "first" } }]
axes = ["threads"]
load = "records / 2"
group = "{phase} of {records / 2:count}, {threads}"
phases = ["get", { mix = { get = 50, update = 50 }, name = "half" }]

[[figure.check]]
claim = "gets are some"
column = "throughput"
of = { system = "std_map", phase = "get" }
at_least = 1

[[figure.check]]
claim = "btree_map is a thousand times as fast"
column = "throughput"
of = { system = "btree_map", phase = "get" }
to = { system = "std_map" }
at_least = 1000
"""


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-bench-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)

    def run_file(self, text, *options):
        file = self.directory / "mine.toml"
        file.write_text(text)
        return PROGRAM.run(str(file), *options)

    def refusal(self, old, new):
        """What is said of the file with a part replaced, and the line of that part."""
        self.assertEqual(RIGHT.count(old), 1, old)
        done = self.run_file(RIGHT.replace(old, new))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        line = RIGHT[:RIGHT.index(old)].count("\n") + 1
        return done.stderr, f"mine.toml:{line}: "

    def test_runs_a_users_file(self):
        report = self.directory / "report.json"
        done = self.run_file(RIGHT, "--json", str(report))
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = json.loads(report.read_text())
        rows = facts["figures"]["gets"]["rows"]
        self.assertEqual(
            {row["group"] for row in rows},
            {f"{phase} of 1,000, {threads}"
             for phase in ("get", "half") for threads in ("1 thread", "2 threads")},
        )
        self.assertEqual({row["system"] for row in rows}, {"btree_map", "std_map"})
        self.assertEqual({row["scaling"] for row in rows if "1 thread" in row["group"]}, {1})

    def test_prints_checks(self):
        report = self.directory / "report.json"
        done = self.run_file(RIGHT, "--json", str(report))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^gets: gets are some: .*, at least 1: holds$")
        self.assertRegex(
            done.stdout,
            r"(?m)^gets: btree_map is a thousand times as fast: .*, at least 1000: does not hold$",
        )
        results = [check["result"] for check in json.loads(report.read_text())["checks"]]
        self.assertEqual(results, ["holds", "does not hold"])

    def test_absent_systems_leave_checks_unmeasured(self):
        done = self.run_file(RIGHT, "--systems", "btree_map")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(": not measured"), 2)

    def test_settings_are_options(self):
        done = self.run_file(RIGHT, "--threads", "2", "--records", "4k")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("get of 2,000, 2 threads", done.stdout)
        self.assertNotIn("1 thread", done.stdout)
        done = self.run_file(RIGHT, "--records", "0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("records is 0", done.stderr)

    def test_errors_name_the_line_and_the_choices(self):
        for old, new, told in (
            ('name = "gets"\n', 'nome = "gets"\n', ["unknown key 'nome'", "title", "columns"]),
            ('["throughput", {', '["thruput", {', ["no metric 'thruput'", "throughput", "p99"]),
            ('phases = ["get", {', 'phases = ["git", {', ["no workload 'git'", "get"]),
            ("update = 50", "updat = 50", ["no operation 'updat'", "update"]),
            ("value = 1000", "valu = 1000", ["unknown key 'valu'", "value"]),
            ('title = "Gets"', "title =", ["expected value"]),
            ('column = "throughput"\nof = { system = "std_map"',
             'column = "mean"\nof = { system = "std_map"', ["no column 'mean'"]),
            ("at_least = 1000", "", ["at_least", "at_most"]),
        ):
            message, place = self.refusal(old, new)
            for part in told:
                self.assertIn(part, message)
            self.assertRegex(message, r"mine\.toml:\d+: ")
            if "[[figure.check]]" not in RIGHT[:RIGHT.index(old)]:
                self.assertIn(place, message)

    def test_errors_name_the_figure(self):
        for old, new, told in (
            ('load = "records / 2"', 'load = "recods / 2"',
             ["nothing is named 'recods'", "records"]),
            ('axes = ["threads"]', 'axes = ["thread"]', ["no setting 'thread'"]),
            ("{ get = 50,", "{ get = 51,", ["101"]),
            ('"{phase} of', '"{phas} of', ["nothing is named 'phas'"]),
        ):
            message, _ = self.refusal(old, new)
            self.assertRegex(message, r"mine\.toml:\d+: ")
            for part in told:
                self.assertIn(part, message)

    def test_lists_files_and_refuses_unknown_ones(self):
        for options in ((), ("--help",)):
            done = PROGRAM.run(*options)
            self.assertEqual(done.returncode, 0)
            for file in FIGURES.glob("*.toml"):
                self.assertIn(file.stem, done.stdout)
        for name in ("nosuch", "nosuch.toml"):
            done = PROGRAM.run(name)
            self.assertEqual(done.returncode, 2)
            self.assertIn("nosuch", done.stderr)


if __name__ == "__main__":
    unittest.main()
