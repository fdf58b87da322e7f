#!/usr/bin/env python3
"""Runs programs on emulated processors: each works, or says what the processor lacks.

tests/march/emulated_test.py QEMU MARCH OPEN_POOL PERDIX [unittest arguments]
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

QEMU = MARCH = OPEN_POOL = TOOL = None
MODELS = ["qemu64", "Nehalem", "Haswell"]
# Which models lack something that is compiled in. Others that users choose: each may.
REFUSED = {
    "x86-64": [],
    "x86-64-v2": ["qemu64"],
    "x86-64-v3": ["qemu64", "Nehalem"],
    "x86-64-v4": ["qemu64", "Nehalem", "Haswell"],
}


class EmulatedTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-march-test-")
        self.addCleanup(scratch.cleanup)
        self.pool = str(Path(scratch.name) / "pool")

    def run_on(self, model, *command):
        done = subprocess.run([QEMU, "-cpu", model, *command], capture_output=True, timeout=300)
        self.assertGreaterEqual(done.returncode, 0, f"{command} on {model} got a signal")
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def refuses(self, model):
        """Whether the tool refuses the processor; then it says why, in one line."""
        status, _, errors = self.run_on(model, TOOL, "--version")
        if status == 0:
            return False
        self.assertEqual(status, 2)
        self.assertRegex(errors, r"^perdix: this processor lacks .*-DPERDIX_MARCH=.*\n$")
        return True

    def test_tool(self):
        for model in MODELS:
            with self.subTest(model):
                refused = self.refuses(model)
                if MARCH in REFUSED:
                    self.assertEqual(refused, model in REFUSED[MARCH])

    def test_library(self):
        for model in MODELS:
            with self.subTest(model):
                Path(self.pool).unlink(missing_ok=True)
                status, output, _ = self.run_on(model, OPEN_POOL, self.pool)
                self.assertEqual(status, 0)
                if self.refuses(model):
                    self.assertRegex(
                        output, r"^unsupported: this processor lacks .*\nthis processor lacks ")
                else:
                    self.assertEqual(output, "works\nworks\n")


if __name__ == "__main__":
    QEMU, MARCH, OPEN_POOL, TOOL = sys.argv[1:5]
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
