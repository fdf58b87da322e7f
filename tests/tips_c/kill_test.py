#!/usr/bin/env python3
"""Kills programs that write to an index of their own, plugged into Tips, at random moments, and
verifies what they leave: all writes that were acknowledged, of those in flight each wholly or not
at all, and no block that the index does not reach.

    tests/tips_c/kill_test.py PROGRAM INDEX [--kills N] [--seed S] [--must-fail]

The program is killed while the index is open and four threads write to it, or while it recovers.
PROGRAM and its records: writer.c. --must-fail: the index has a bug, and a kill must show it.
"""

import argparse
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECORD = struct.Struct("=IIQQ")
PATIENCE = 300  # seconds; an index that a kill has damaged may lead round in circles
MOST = 20  # times the kills that were asked for, where a busy machine lets few writes begin
OPENING_ONE_IN = 8  # kills that may come before the first write


class Finding(Exception):
    """What a kill has left that must not be."""


class Writers:
    """The states that the keys of an index may have, by the records of its writers."""

    def __init__(self):
        self.certain = {}  # the value of each key that is there
        self.in_flight = {}  # by thread: key and value of a write that has not returned
        self.writes = 0

    def read(self, records):
        """All records of one program."""
        self.in_flight = {}
        whole = len(records) // RECORD.size * RECORD.size
        for thread, done, key, value in RECORD.iter_unpack(records[:whole]):
            if not done:
                self.in_flight[thread] = (key, value)
                continue
            if self.in_flight.pop(thread) != (key, value):
                raise Finding("a thread acknowledges what it has not begun")
            self.settle(key, value)
            self.writes += 1

    def settle(self, key, value):
        if value:
            self.certain[key] = value
        else:
            self.certain.pop(key, None)

    def verify(self, found):
        """Compares with the pairs of the index, which are certain then."""
        unsure = dict(self.in_flight.values())
        for key in self.certain.keys() | found.keys() | unsure.keys():
            allowed = {self.certain.get(key, 0)} | ({unsure[key]} if key in unsure else set())
            if found.get(key, 0) not in allowed:
                raise Finding(f"key {key} has {found.get(key, 0)}, not one of {sorted(allowed)}")
        self.certain = found


def write_and_kill(command, chance):
    """Runs a writer, and kills it. Returns its records."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
        try:
            if not chance.randrange(OPENING_ONE_IN):
                time.sleep(chance.uniform(0, 0.01))
            else:
                wanted = chance.randrange(1, 40_000) * RECORD.size
                end = time.monotonic() + PATIENCE
                while output.seek(0, 2) < wanted and child.poll() is None:
                    if time.monotonic() > end:
                        raise Finding(f"the writer has acknowledged {output.seek(0, 2)} bytes of "
                                      f"records in {PATIENCE} s, not {wanted}")
                    time.sleep(0.0005)
        finally:
            child.kill()
            errors = child.communicate()[1]
        if child.returncode != -signal.SIGKILL:
            raise Finding(f"the writer ended by itself: {errors.decode()}")
        output.seek(0)
        return output.read()


def dump(command):
    """The pairs of an index that is sound, in a pool that is."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as timeout:
        raise Finding(f"{command[1]} hangs") from timeout
    if done.returncode != 0:
        raise Finding(f"{command[1]} failed ({done.returncode}): {done.stderr.decode()}")
    return dict(tuple(map(int, line.split())) for line in done.stdout.splitlines())


def run(arguments, writers, pool):
    """Returns how many kills there were, and how many of them met a write in flight: half as many
    as were asked for, even if that takes more kills."""
    chance, met, kill = random.Random(arguments.seed), 0, 0
    most = arguments.kills * (1 if arguments.must_fail else MOST)
    while kill < arguments.kills or (met < arguments.kills // 2 and kill < most):
        kill += 1
        where = [str(pool), arguments.index]
        try:
            writers.read(write_and_kill([arguments.program, "write", *where, str(kill)], chance))
            met += bool(writers.in_flight)
            writers.verify(dump([arguments.program, "dump", *where]))
        except Finding as finding:
            raise Finding(f"kill {kill}, seed {arguments.seed}: {finding}") from finding
    return kill, met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("index")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--must-fail", action="store_true")
    arguments = parser.parse_args()
    shared = Path("/dev/shm")
    writers = Writers()
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        try:
            kills, met = run(arguments, writers, Path(folder) / "killed.pool")
        except Finding as finding:
            print(finding)
            return 0 if arguments.must_fail and writers.writes > 0 else 1
    print(f"{kills} kills, {met} of them amid a write, {writers.writes:,} writes, "
          f"seed {arguments.seed}: all is there")
    if arguments.must_fail or met < arguments.kills // 2:
        print("FAILED: the bug was not noticed" if arguments.must_fail else "FAILED: too few kills"
              " came amid a write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
