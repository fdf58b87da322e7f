#!/usr/bin/env python3
"""Runs the tool with engines that it does not know: a hash index, and an index that is no map.

tests/samples/tool_test.py TOOL_WITH_SAMPLES TOOL_WITHOUT ADD_SAMPLE_POINTS [unittest arguments]
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = WITHOUT_SAMPLES = ADD_POINTS = None


class Samples(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-samples-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        self.pool = str(self.directory / "test.pool")
        self.run_tool("create", self.pool)

    def run_tool(self, *arguments, status=0, stdin=b"", tool=None):
        done = subprocess.run([tool or TOOL, *arguments], input=stdin, capture_output=True,
                              timeout=300)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr!r}")
        return (done.stdout if status == 0 else done.stderr).decode()

    def indexes(self, **options):
        return json.loads(self.run_tool("info", self.pool, "--json", **options))["indexes"]


class SampleHash(Samples):
    def test_survives_dump_and_load(self):
        rows = "".join(f"key{i}\tvalue{i}\n" for i in range(500)).encode()
        self.run_tool("load", self.pool, "rows", "-", "--engine", "sample_hash", stdin=rows)
        self.assertEqual(self.run_tool("get", self.pool, "rows", "key77"), "value77\n")
        dump = self.run_tool("dump", self.pool, "rows")
        self.run_tool("load", self.pool, "copy", "-", stdin=dump.encode())
        copy = self.run_tool("dump", self.pool, "copy", "--no-header")
        self.assertEqual(sorted(copy.encode().splitlines()), sorted(rows.splitlines()))
        self.assertEqual({index["engine"] for index in self.indexes()}, {"sample_hash"})
        self.run_tool("load", self.pool, "sorted", "-", "--engine", "sptree",
                      stdin=copy.encode())
        self.assertEqual(self.run_tool("dump", self.pool, "sorted", "--no-header").splitlines(),
                         sorted(copy.splitlines()))
        self.assertIn("1,500 pairs", self.run_tool("check", self.pool))

    def test_has_no_scan(self):
        self.run_tool("put", self.pool, "rows", "k", "v", "--engine", "sample_hash")
        message = self.run_tool("scan", self.pool, "rows", status=2)
        self.assertIn("keeps no order", message)


class SamplePoints(Samples):
    def setUp(self):
        super().setUp()
        for i in range(9):
            subprocess.run([ADD_POINTS, self.pool, "points", str(i), "7"], check=True)
        self.run_tool("put", self.pool, "pairs", "k", "v")

    def test_shows_in_info_and_check(self):
        points = {index["name"]: index for index in self.indexes()}["points"]
        self.assertEqual(points, {"name": "points", "engine": "sample_points", "holds": "points"})
        self.assertRegex(self.run_tool("info", self.pool, "--stats"),
                         r"points +sample_points +points")
        self.assertIn("10 pairs", self.run_tool("check", self.pool))

    def test_is_no_map(self):
        for command in (["get", "k"], ["del", "k"], ["put", "k", "v"], ["scan"], ["dump"]):
            message = self.run_tool(command[0], self.pool, "points", *command[1:], status=2)
            self.assertIn("holds points", message)

    def test_can_be_dropped(self):
        self.run_tool("drop", self.pool, "points")
        self.assertEqual([index["name"] for index in self.indexes()], ["pairs"])
        self.run_tool("check", self.pool)

    def test_is_left_alone_by_a_tool_that_does_not_know_it(self):
        self.run_tool("drop", self.pool, "points", status=2, tool=WITHOUT_SAMPLES)
        self.run_tool("get", self.pool, "points", "k", status=2, tool=WITHOUT_SAMPLES)
        self.assertEqual(self.run_tool("get", self.pool, "pairs", "k", tool=WITHOUT_SAMPLES), "v\n")
        self.assertEqual(len(self.indexes(tool=WITHOUT_SAMPLES)), 2)
        self.assertIn("10 pairs", self.run_tool("check", self.pool))


if __name__ == "__main__":
    TOOL, WITHOUT_SAMPLES, ADD_POINTS = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main()
