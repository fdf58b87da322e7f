#!/usr/bin/env python3
"""Runs perdix-demo, without its comparison, on a small word list.

    tests/tool/demo_test.py PATH_OF_PERDIX_DEMO [unittest arguments]
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DEMO = None


class DemoTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-demo-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        self.pools = self.directory / "pools"
        self.pools.mkdir()

    def run_demo(self, *arguments):
        command = [DEMO, "--no-comparison", "--dir", str(self.pools), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def test_nothing_is_lost(self):
        words = "".join(f"word{i * 7919 % 30011}\n" for i in range(30011))
        path = self.write("words", words)
        for seed in range(5):
            done = self.run_demo("--words", path, "--seed", str(seed))
            self.assertEqual(done.returncode, 0, f"seed {seed}: {done.stdout}{done.stderr}")
            self.assertIn("Nothing was lost", done.stdout)
        self.assertEqual(os.listdir(self.pools), [])

    def test_empty_and_repeated_lines_are_no_words(self):
        done = self.run_demo("--words", self.write("words", "pear\n\nplum\npear\n"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 words", done.stdout)

    def test_missing_words_are_explained(self):
        for path in (str(self.directory / "none"), self.write("empty", "")):
            done = self.run_demo("--words", path)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn("--words", done.stderr)

    def test_wrong_usage(self):
        for arguments in (["--frobnicate"], ["--seed", "x"], ["word"], ["--records", "0"]):
            done = self.run_demo(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_help(self):
        done = self.run_demo("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--no-comparison", done.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    DEMO = os.path.abspath(sys.argv.pop(1))
    unittest.main()
