#!/usr/bin/env python3
"""Runs perdix-bench of an instrumented build: what it counts of persistent memory.

tests/tool/traffic_test.py PATH_OF_PERDIX_BENCH [unittest arguments]
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = None
LINE = 64
KINDS = {"load": {"insert"}, "get": {"get"}, "absent": {"absent get"}, "a": {"get", "update"},
         "e": {"scan", "insert"}, "f": {"get", "read-modify-write"}, "erase": {"erase"}}
COUNTS = {"PM lines read", "PM lines written", "lines flushed", "fences", "bus bytes read",
          "bus bytes written", "media bytes read", "media bytes read to modify",
          "media bytes written"}
BYTES = ["--keys", "bytes", "--value-size", "30"]


class TrafficTest(unittest.TestCase):
    def bench(self, *options, records=3000):
        """What was counted, by workload, kind of operation and name of the count."""
        with tempfile.TemporaryDirectory(prefix="perdix-traffic-test-") as scratch:
            path = Path(scratch) / "report.json"
            command = [BENCH, "--systems", "sptree", "--baseline", "sptree",
                       "--records", str(records), "--operations", str(records), "--pool-dir",
                       scratch, "--json", str(path), *options]
            done = subprocess.run(command, capture_output=True, timeout=300)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr!r}")
            self.text = done.stdout.decode()
            return {result["workload"]: result["per_operation"]
                    for result in json.loads(path.read_text())["results"]}

    def test_prints_every_count_of_every_kind_of_operation(self):
        counted = self.bench("--workloads", ",".join(KINDS))
        for workload, kinds in KINDS.items():
            self.assertLessEqual(kinds, set(counted[workload]), workload)
            for kind in kinds:
                self.assertEqual(set(counted[workload][kind]), COUNTS, (workload, kind))
        for name in COUNTS:
            self.assertIn(name, self.text)

    def test_counts_the_same_in_every_run(self):
        for shape in [[], BYTES]:
            for platform in ["--adr", "--eadr"]:
                options = [*shape, platform, "--cache-bytes", "256K"]
                options += ["--workloads", ",".join(KINDS)]
                runs = [self.bench(*options) for _ in range(3)]
                self.assertEqual(runs[0], runs[1], options)
                self.assertEqual(runs[0], runs[2], options)

    def test_other_keys_count_differently(self):
        """The comparison above would be worth nothing if counts never differed."""
        runs = [self.bench("--workloads", "get", "--seed", seed) for seed in "12"]
        self.assertNotEqual(runs[0]["load"], runs[1]["load"])

    def test_counts_what_is_known_of_sptree(self):
        counted = self.bench("--workloads", "load,get,absent,update")
        get, absent = counted["get"]["get"], counted["absent"]["absent get"]
        self.assertGreaterEqual(get["PM lines read"], 1)  # the pair
        self.assertLess(get["PM lines read"], 1.5)  # fingerprints leave few other pairs to look at
        self.assertLess(absent["PM lines read"], 0.5)
        for reading in (get, absent):
            self.assertEqual(reading["PM lines written"], 0)
            self.assertEqual(reading["fences"], 0)
        update = counted["update"]["update"]
        self.assertEqual(update["PM lines written"], 1)
        self.assertEqual((update["lines flushed"], update["fences"]), (1, 1))
        insert = counted["load"]["insert"]
        self.assertGreaterEqual(insert["fences"], 2)  # the pair, then its bit
        self.assertGreaterEqual(insert["lines flushed"], 2)

    def test_the_media_unit_decides_what_a_line_costs(self):
        update = {}
        for unit in (64, 256, 4096):
            options = ["--workloads", "update", "--media-unit", str(unit)]
            update[unit] = self.bench(*options, records=20000)["update"]["update"]
            self.assertEqual(update[unit]["bus bytes written"], LINE, "ADR: each flush writes")
        written = {unit: counts["media bytes written"] for unit, counts in update.items()}
        self.assertLessEqual(written[64], LINE)
        self.assertLess(written[64], written[256])
        self.assertLess(written[256], written[4096])

    def test_only_evictions_write_on_eadr(self):
        options = ["--workloads", "update", "--eadr"]
        self.assertEqual(self.bench(*options)["update"]["update"]["bus bytes written"], 0)
        small = self.bench(*options, "--cache-bytes", "16K")["update"]["update"]
        self.assertGreater(small["bus bytes written"], 0)

    def test_refuses_what_the_model_does_not_know(self):
        for options in (["--media-unit", "100"], ["--adr", "--eadr"]):
            done = subprocess.run([BENCH, *options], capture_output=True, timeout=300)
            self.assertEqual(done.returncode, 2, options)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
