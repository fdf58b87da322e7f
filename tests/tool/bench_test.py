#!/usr/bin/env python3
"""Runs perdix-bench on a few records.

    tests/tool/bench_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = None


class BenchTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-bench-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)

    def run_bench(self, *options):
        return subprocess.run([BENCH, *options], capture_output=True, text=True, timeout=300)

    def error(self, *options):
        """The one line that the program prints when it refuses."""
        done = self.run_bench(*options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("perdix-bench: "), done.stderr)
        return done.stderr

    def test_small_run(self):
        report, page = self.directory / "report.json", self.directory / "report.html"
        done = self.run_bench(
            "--records", "2k", "--operations", "1k",
            "--workloads", "load,a,b,c,d,e,f,absent,erase,reopen",
            "--systems", "sptree,btree_map,lmdb", "--threads", "1,2",
            "--pool-dir", str(self.directory), "--json", str(report), "--html", str(page),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("PROBLEM", done.stdout)
        facts = json.loads(report.read_text())
        self.assertEqual(facts["problems"], [])
        self.assertEqual(len({result["system"] for result in facts["results"]}), 3)
        self.assertIn("<svg", page.read_text())
        self.assertEqual(sorted(os.listdir(self.directory)), ["report.html", "report.json"])

    def test_bad_options(self):
        self.assertIn("nonesuch", self.error("--systems", "nonesuch"))
        self.assertIn("nonesuch", self.error("--workloads", "nonesuch"))
        self.assertIn("'many' is not a count", self.error("--records", "many"))
        self.assertIn("perdix-bench --help", self.error("--nonesuch", "1"))
        self.error("--keys", "float")
        self.error("--json", "/no/such/directory/report.json")

    def test_help_shows_examples(self):
        done = self.run_bench("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("perdix bench --", done.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BENCH = os.path.abspath(sys.argv.pop(1))
    unittest.main()
