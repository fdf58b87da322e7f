#!/usr/bin/env python3
"""Requires that the schedule fuzzer reaches the steps of the engines' protocols that have names
(pm::on_step), within a bounded number of schedules.

    tests/linearizability/steps.py PROGRAM           all engines
    tests/linearizability/steps.py PROGRAM nbtree    the steps whose names begin so

Fails if a step is not reached, if the sources name one that is not in the lists below, or if they
no longer name one that is.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
SCHEDULES = 25  # of each kind in a round
ROUNDS = 40  # at most, until all steps are reached

COMMON = "--reopen"
DOMAIN = "--domain memory_controller"  # unless a kind names another
STRINGS = "--keys bytes --values bytes"
KINDS = {
    "cceh": (
        "--engine cceh",
        "--engine cceh --beginning many",
        f"--engine cceh {STRINGS}",
        "--engine cceh --dram-budget 30000 --technique bo",
        f"--engine cceh {STRINGS} --dram-budget 30000 --technique b",
    ),
    "elimda": (
        "--engine elimda --domain cpu_cache",
        "--engine elimda --domain cpu_cache --beginning many",
        f"--engine elimda {STRINGS} --domain cpu_cache",
        "--engine elimda --domain cpu_cache --beginning contested-full",
        "--engine elimda --domain cpu_cache --full",
        "--engine elimda --domain cpu_cache --growing --beginning full",
        "--engine elimda --domain cpu_cache --straight",
        "--engine elimda",
    ),
    "fastfair": (
        "--engine fastfair --dram-budget 1000 --technique bo --beginning many",
        f"--engine fastfair {STRINGS} --dram-budget 1000 --technique b",
    ),
    "nbtree": (
        "--engine nbtree",
        f"--engine nbtree {STRINGS}",
        f"--engine nbtree {STRINGS} --beginning edge",
        "--engine nbtree --beginning contested",
        "--engine nbtree --beginning contested-full",
        "--engine nbtree --full",
    ),
    "skiplist": (
        "--engine skiplist",
        "--engine skiplist --beginning contested",
        f"--engine skiplist {STRINGS}",
        "--engine skiplist --dram-budget 1500 --technique b",
        "--engine skiplist --dram-budget 500 --technique b --beginning many",
        f"--engine skiplist {STRINGS} --dram-budget 1500 --technique boc",
    ),
    "sptree": (
        "--engine sptree --dram-budget 3K --dram-budget-after 1K",
        "--engine sptree --dram-budget 1G",
        "--engine sptree --dram-budget 3K --beginning edge",
        f"--engine sptree {STRINGS} --dram-budget 3K",
    ),
}
KINDS["art"] = (f"--engine sptree {STRINGS} --beginning edge", *KINDS["sptree"])
KINDS["alloc"] = (f"--engine sptree {STRINGS} --dram-budget 0",)

# What must be reached.
STEPS = """
alloc: a freed block waits for its readers
art: a node goes
art: a node grows
art: a prefix grows
art: a prefix is shorter and not below another node
art: change a node
art: change the first child of a node
art: children have moved, and not their bytes
art: fork
art: put a node in the place of another
art: split a prefix
cceh: a change of the directory is committed
cceh: a pair is about to move
cceh: a segment is about to be split
cceh: a segment is about to be written anew
cceh: an entry is stale
elimda: a D-bucket grows
elimda: a bucket becomes warm
elimda: a bucket is replaced
elimda: a copy is in flight
elimda: a copy is in the DRAM table
elimda: a flush waits for another
elimda: a log was copied
elimda: a lookup begins again
elimda: a lookup goes on to the logs
elimda: a pair comes into the DRAM table
elimda: a pair is in its P-bucket
elimda: a pair was appended
elimda: a segment is split in PM
elimda: a segment was split
elimda: a split removes a duplicate
elimda: a writer meets a log that is retired
elimda: a writer meets a segment that was split
elimda: all logs are locked
elimda: an erase goes on to the bucket
elimda: an insert looks again
elimda: an update goes on to the logs
elimda: pairs are in the PM table and the backup log
elimda: there are more logs in PM
fastfair: a leaf is about to be written anew
fastfair: a node is about to get its entry
nbtree: a cold leaf is frozen
nbtree: a frozen insert has won
nbtree: a join is left for later
nbtree: a join meets a leaf that changes
nbtree: a leaf became warm meanwhile
nbtree: a leaf that was read is no more at its position
nbtree: a leaf was split
nbtree: a search finds a position without a leaf
nbtree: a search goes right
nbtree: a slot is taken
nbtree: absorb a leaf that is needed
nbtree: an entry changes before it is exchanged
nbtree: an entry changes before it is frozen
nbtree: an entry was erased before it was shown
nbtree: an erase may not be durable
nbtree: an erase meets a frozen entry
nbtree: an insert is frozen undecided
nbtree: an insert is pending
nbtree: an insert may not be durable
nbtree: an insert's slot was closed
nbtree: an update may not be durable
nbtree: an update meets a frozen entry
nbtree: another has decided an insert
nbtree: another preparation is taken
nbtree: close a leaf
nbtree: decide a pending entry of a cold leaf
nbtree: decide an insert for its owner
nbtree: end a round of joins
nbtree: exchange an entry
nbtree: help to link
nbtree: hide an entry
nbtree: kill entries that lost
nbtree: leave a request
nbtree: leave a request to another
nbtree: leaves were joined
nbtree: link a block
nbtree: make a leaf warm
nbtree: make up for joins
nbtree: no space for a modification
nbtree: no space for the reserve
nbtree: pass a position that is joined
nbtree: persist what another thread may not have
nbtree: publish a node
nbtree: publish a root
nbtree: put a leaf in its position
nbtree: renew a leaf
nbtree: resolve what a crash has left
nbtree: resume some leaves
nbtree: say what becomes of a leaf
nbtree: show an entry
nbtree: take a leaf from a position that is joined
nbtree: take a slot
nbtree: the owner of a slot before was faster
nbtree: the root has one child
nbtree: the root splits
nbtree: use the reserve
skiplist: a hollow node goes
skiplist: a lookup begins again
skiplist: a node is on one level less
skiplist: a node is on one level more
skiplist: a node is raised by a level
skiplist: a range has changed
skiplist: a run is on one level more
skiplist: a write begins again
skiplist: an erase begins again
sptree: a leaf may be cold
sptree: a leaf on its way to the backup is gone
sptree: a leaf was split
sptree: a merge ends a chain
sptree: a neighbour grew before it was locked
sptree: a node leaves the top layer
sptree: a reader meets a change
sptree: a reader meets a node that is gone
sptree: a split ends a chain
sptree: a warm leaf lies before the key
sptree: a writer meets a node that is gone
sptree: add a tombstone
sptree: adopt a chain
sptree: all leaves are warm
sptree: back up a leaf
sptree: bring pairs back into their columns
sptree: close a chain
sptree: go right
sptree: leaves were merged
sptree: lock a cold range
sptree: lock a node
sptree: make a leaf warm
sptree: publish a node
sptree: queue a leaf for the backup
sptree: resume one leaf for the log
"""

# Steps of write buffers, and the engines that must reach them, each for itself.
BUFFERED = ("cceh", "fastfair", "skiplist")
SHARED = {
    "buffers: a buffer that another home may give": ("sptree", *BUFFERED),
    "buffers: a merge ends a chain": BUFFERED,
    "buffers: adopt a chain": BUFFERED,
    "buffers: all chains are adopted": BUFFERED,
    "buffers: clean a chain": ("sptree",),
    "buffers: make a checkpoint": ("sptree",),
    "buffers: shrink the log": ("sptree",),
    "buffers: take the buffer of another home": ("sptree", *BUFFERED),
}

# What takes more schedules than these, or a state that they do not have.
RARE = """
art: a node shrinks
elimda: a copy is dropped from the backup log
elimda: a flush failed half-way
elimda: no space for a split
elimda: no space for logs
elimda: no space for more logs
elimda: no space to drain the logs
elimda: segments are joined in PM
nbtree: a frozen insert has lost
nbtree: a position goes before it comes
nbtree: a position goes before its leaf is renewed
nbtree: a position succeeds one that is gone
nbtree: a preparation does not fit
nbtree: a search completes a join
nbtree: abandon a stripe
nbtree: an insert that lost is frozen
nbtree: complete a join on the way to the left neighbour
nbtree: the death of an entry that lost may not be durable
nbtree: the left neighbour has gone
skiplist: a hollow node has changed
skiplist: a raise begins again
sptree: a stale chain at the left comes first
buffers: end a stale chain
buffers: give back a buffer
sptree: no room for a tombstone
buffers: no space to keep the log short
"""


def lines(text):
    return {line for line in text.splitlines() if line}


def named_in_sources():
    """The steps that the engines name."""
    names = set()
    for path in SOURCES.rglob("*.*"):
        if path.suffix in (".h", ".cc") and "testing" not in path.parts:
            names.update(re.findall(r'on_step\("([^"]+)"\)', path.read_text()))
    return names


def misfits():
    known = lines(STEPS) | lines(RARE) | SHARED.keys()
    named = named_in_sources()
    return [f"not in the lists: {name}" for name in sorted(named - known)] + [
        f"no source names it: {name}" for name in sorted(known - named)
    ]


def run(program, kind, seed):
    """How often each step was taken in some schedules of a kind."""
    domain = [] if "--domain" in kind else DOMAIN.split()
    command = [program, *kind.split(), *domain, *COMMON.split(), "--steps"]
    command += ["--seed", str(seed), "--runs", str(SCHEDULES)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return {
        name: int(count) for count, name in re.findall(r"step (\d+) (.*)", result.stdout)
    }


def missing_after(program, wanted, kinds):
    """Runs schedules of all kinds in turn; returns what was not reached."""
    reached = collections.Counter()
    schedules = 0
    for turn in range(ROUNDS):
        for kind in kinds:
            reached.update(run(program, kind, 1 + turn * SCHEDULES))
            schedules += SCHEDULES
            if not wanted - reached.keys():
                print(f"{len(wanted)} steps, all reached by {schedules} schedules")
                return set()
    return wanted - reached.keys()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    wrong = misfits()
    engines = sys.argv[2:] or sorted(KINDS)
    for engine in engines:
        wanted = {name for name in lines(STEPS) if name.startswith(f"{engine}: ")}
        wanted |= {name for name, engines_of in SHARED.items() if engine in engines_of}
        for name in sorted(missing_after(sys.argv[1], wanted, KINDS[engine])):
            wrong.append(f"not reached: {name}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
