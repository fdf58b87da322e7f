#!/usr/bin/env python3
"""Runs the tool `perdix` with files of the system that are not as usual: a pool in memory, and
standard descriptors that are closed or full.

tests/tool/files_test.py PATH_OF_PERDIX [unittest arguments]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tool_test


class Memory(tool_test.ToolTest):
    def setUp(self):
        super().setUp()
        shared = Path("/dev/shm")
        if not shared.is_dir():
            self.skipTest("there is no folder in memory")
        folder = tempfile.TemporaryDirectory(dir=shared)
        self.addCleanup(folder.cleanup)
        self.pool = str(Path(folder.name) / "test.pool")

    def test_survives_no_power_failure(self):
        said = self.output("create", self.pool, "--durability", "power")
        self.assertIn(b"no power failure: its file lies in memory", said)
        self.assertIn(b"warning     its file lies in memory", self.output("info", self.pool))
        self.assertTrue(json.loads(self.output("info", self.pool, "--json"))["in_memory"])

    def test_of_durability_process_is_as_asked_for(self):
        self.assertIn(b"but not of the machine", self.output("create", self.pool))
        self.assertNotIn(b"warning", self.output("info", self.pool))


class StandardFiles(tool_test.ToolTest):
    """The tool without standard input, output or error, as a daemon or a cron job may run it."""

    def run_without(self, *arguments, closed=(0, 1, 2)):
        """The exit status of the tool with these descriptors closed."""
        process = subprocess.Popen(
            [tool_test.TOOL, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=lambda: [os.close(number) for number in closed],
        )
        return process.wait(timeout=tool_test.PATIENCE)

    def test_a_pool_is_never_standard_output(self):
        self.output("create", self.pool)
        for i in range(3):
            self.assertEqual(self.run_without("put", self.pool, "words", f"k{i}", "v"), 0)
        self.assertEqual(self.run_without("get", self.pool, "words", "absent"), 1)
        self.assertEqual(self.run_without("info", f"{self.pool}.absent"), 2)
        self.assertEqual(self.run_without("dump", self.pool, "words", closed=[1]), 2)
        self.assertIn(b"sound", self.output("check", self.pool))
        self.assertEqual(self.output("get", self.pool, "words", "k2"), b"v\n")

    def test_without_input_nothing_is_loaded(self):
        self.output("create", self.pool)
        self.assertEqual(self.run_without("load", self.pool, "words", "-", closed=[0]), 2)

    def test_what_can_not_be_told_does_not_change_the_status(self):
        self.output("create", self.pool)
        self.output("put", self.pool, "words", "k", "v")
        absent = ["info", f"{self.pool}.absent"], ["get", self.pool, "words", "absent"]
        with open("/dev/full", "w") as full:
            found = [subprocess.run([tool_test.TOOL, *command], stderr=full,
                                    timeout=tool_test.PATIENCE).returncode
                     for command in absent]
        self.assertEqual(found, [2, 1])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tool_test.TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
