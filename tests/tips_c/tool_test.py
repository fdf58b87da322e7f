#!/usr/bin/env python3
"""The tool over an index whose plug-in it does not have.

tests/tips_c/tool_test.py TOOL USE_TABLE [unittest arguments]
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = USE_TABLE = None


class UnknownPlugin(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-plugin-test-")
        self.addCleanup(scratch.cleanup)
        self.pool = str(Path(scratch.name) / "test.pool")
        self.use()

    def use(self):
        done = subprocess.run([USE_TABLE, self.pool], capture_output=True, check=True, timeout=300)
        self.assertEqual(done.stdout, b"two crates of pears\n")

    def tool(self, command, *arguments, status=0):
        done = subprocess.run([TOOL, command, self.pool, *arguments], capture_output=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, status, f"{command}: {done.stderr!r}")
        return (done.stdout if status == 0 else done.stderr).decode()

    def test_shows_in_info(self):
        self.assertRegex(self.tool("info"), r"crates +tips:user:table +u64 +bytes")
        self.assertRegex(self.tool("info", "--stats"), r"crates +tips:user:table +u64 +bytes")
        index, = json.loads(self.tool("info", "--stats", "--json"))["indexes"]
        self.assertEqual(index["engine"], "tips:user:table")
        self.assertNotIn("pairs", index)

    def test_is_checked_as_far_as_possible(self):
        self.assertIn("only its logs were checked", self.tool("check"))

    def test_is_left_alone(self):
        for command in (["get", "crates", "42"], ["put", "crates", "42", "none"],
                        ["dump", "crates"], ["scan", "crates"], ["drop", "crates"]):
            self.assertIn("plug-in", self.tool(*command, status=2))
        self.tool("put", "pairs", "k", "v")
        self.assertEqual(self.tool("get", "pairs", "k"), "v\n")
        self.use()

    def test_can_be_made_by_no_tool(self):
        error = self.tool("put", "new", "1", "v", "--engine", "tips:user:table", "--keys", "u64",
                          status=2)
        self.assertIn("tips:user:table not in", error)
        self.assertEqual(len(json.loads(self.tool("info", "--json"))["indexes"]), 1)


if __name__ == "__main__":
    TOOL, USE_TABLE = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main()
