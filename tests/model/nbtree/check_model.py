#!/usr/bin/env python3
"""Checks the model of NbTree's protocol with Spin, and that it finds bugs that are planted in it.

    check_model.py                     all runs but the large ones, and all bugs (minutes)
    check_model.py --quick             the short runs, and the bugs that they find
    check_model.py --large --memory 9000
    check_model.py --only join         runs and bugs whose name contains "join"
    check_model.py --list              what there is
    check_model.py --trail DIRECTORY   keeps the verifiers, and the paths to what they found, there

A run is exhaustive: all interleavings, all crashes, all that a crash may leave. It fails if one
of them breaks a promise; a bug's run fails if none does. Of a large run, states are remembered as
three bits each (Spin's bitstate search): few of them are taken for others if the hash factor, bits
by state, is above 100. Ends with 1 if anything failed, with 2 if Spin or a C compiler is missing.
How to read a path: docs/durability/nbtree.md, "The model".
"""

import argparse
import collections
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from runs import BUGS, RUNS

HERE = Path(__file__).resolve().parent
MODEL = ("nbtree.pml", "steps.pml", "thread.pml", "nature.pml", "history.h")
# Of the verifier: steps are atomic blocks already, and the way in which threads are halted does not
# go with partial order reduction.
OPTIONS = ("-DNOREDUCE", "-DVECTORSZ=4096")
# Without optimisation, short runs take longer to compile than it saves. States are compressed.
OPTIONS_OF_SHORT = ("-O0", "-DCOLLAPSE")
OPTIONS_OF_LARGE = ("-O2", "-DBITSTATE")
DEPTH = 1_000_000
# What a verifier needs besides the bits of states.
MEGABYTES_BESIDE = 200
# clang needs half the time that gcc needs for such files.
COMPILERS = tuple(filter(None, (os.environ.get("CC"), "clang-14", "clang", "cc", "gcc")))

# What a bug may be found by. Other errors are the model's own: a bound that is too small.
PROMISES = {
    "explained": "no order of the operations explains their results",
    "(j==1)": "two entries of a key are live",
    "invalid end state": "a thread can't go on",
    "non-progress cycle": "a thread runs without end",
}

# found: a promise that was broken, or None. wrong: why there is no verdict, or None.
# factor: the hash factor of a large run.
Result = collections.namedtuple("Result", "states seconds megabytes factor found wrong")


def missing_tools():
    missing = [] if shutil.which("spin") else ["spin (the package `spin`)"]
    if not any(map(shutil.which, COMPILERS)):
        missing.append("a C compiler (the package `build-essential`)")
    return missing


def execute(command, folder):
    """Runs a command to its end: its output. What went wrong with the tool is its output's end."""
    done = subprocess.run(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, done.stdout


def build(run, bug, megabytes, folder):
    """Makes the verifier of a run in the folder. Returns an error message, or None."""
    for name in MODEL:
        shutil.copy(HERE / name, folder)
    defines = dict(run.defines)
    if run.stops:
        defines["STOP"] = "1"
    if bug is not None:
        defines["BUG"] = bug.name
    lines = [f"#define {name} {value}\n" for name, value in defines.items()]
    (folder / "run.pml").write_text("".join(lines) + '#include "nbtree.pml"\n')
    compiler = next(filter(shutil.which, COMPILERS))
    kind = "-DNP" if run.stops else "-DSAFETY"
    size = OPTIONS_OF_LARGE if run.large else OPTIONS_OF_SHORT
    options = (*OPTIONS, *size, f"-DMEMLIM={megabytes}", kind)
    compile_it = (compiler, "-w", "-I.", *options, "-o", "pan", "pan.c")
    for command in (("spin", "-a", "run.pml"), compile_it):
        status, output = execute(command, folder)
        if status != 0 or not (folder / "pan.c").is_file():
            return f"{command[0]} failed:\n{output.strip()}"
    return None


def verdict_on(output):
    """(broken promise, reason why there is none) of what a verifier printed."""
    error = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", output, re.MULTILINE)
    if error:
        broken = [text for mark, text in PROMISES.items() if mark in error[1]]
        return (broken[0], None) if broken else (None, error[1])
    if "errors: 0" not in output:
        return None, "the verifier ended early:\n" + output.strip()
    for sign in ("max search depth too small", "Search not completed", "out of memory"):
        if sign in output:
            return None, f"not exhaustive: {sign}"
    return None, None


def explore(run, bug, megabytes, folder):
    wrong = build(run, bug, megabytes, folder)
    if wrong:
        return Result(0, 0.0, 0.0, None, None, wrong)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    options = ["-l"] if run.stops else []
    if run.large:
        bits = ((megabytes - MEGABYTES_BESIDE) << 23).bit_length() - 1  # half of that, or more
        options += [f"-w{bits}", "-k3"]
    _, output = execute(["./pan", f"-m{DEPTH}", *options], folder)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    states = re.search(r"([\d.e+]+) states, stored", output)
    memory = re.search(r"([\d.]+)\ttotal actual memory", output)
    factor = re.search(r"hash factor: ([\d.]+)", output)
    return Result(
        int(float(states[1])) if states else 0,
        seconds,
        float(memory[1]) if memory else 0.0,
        float(factor[1]) if factor else None,
        *verdict_on(output),
    )


def chosen(arguments):
    """(run, bug or None) of each verifier."""
    runs = {run.name: run for run in RUNS if run.quick or not arguments.quick}
    jobs = [(run, None) for run in runs.values() if arguments.large or not run.large]
    jobs += [(runs[bug.run], bug) for bug in BUGS if bug.run in runs]
    return [job for job in jobs if arguments.only in (job[1] or job[0]).name]


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def line_about(run, bug, result):
    """(whether it is as it should be, what to print)."""
    name = (bug or run).name
    figures = f"{result.states:>9} states {result.seconds:6.1f} s {result.megabytes:5.0f} MB"
    if result.factor is not None:
        figures += f"  hash factor {result.factor:.0f}"
    if result.wrong:
        return False, f"FAILED  {name:<28} {result.wrong}"
    if bug is None and result.found:
        return False, f"FAILED  {name:<28} {result.found}"
    if bug is None:
        return True, f"holds   {name:<28} {figures}"
    if not result.found:
        return False, f"FAILED  {name:<28} not found in {figures.strip()} ({run.name})"
    return True, f"found   {name:<28} {figures}  {result.found}"


def list_all():
    for run in RUNS:
        print(f"run  {run.name:<28} {run.about}{' (quick)' if run.quick else ''}")
    for bug in BUGS:
        print(f"bug  {bug.name:<28} {bug.about} ({bug.run})")


def check(jobs, megabytes, keep):
    failed = 0
    for number, (run, bug) in enumerate(jobs):
        name = run.name if bug is None else f"{bug.name} in {run.name}"
        progress(f"{number + 1} of {len(jobs)}: {name}")
        with tempfile.TemporaryDirectory(prefix="perdix-model-") as scratch:
            folder = Path(scratch)
            if keep is not None:
                folder = keep / (run.name if bug is None else bug.name)
                folder.mkdir(parents=True, exist_ok=True)
            good, line = line_about(run, bug, explore(run, bug, megabytes, folder))
        progress("")
        print(line, flush=True)
        failed += not good
    return failed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="only the short runs and their bugs")
    parser.add_argument("--large", action="store_true", help="the large runs, too (hours)")
    parser.add_argument("--only", default="", metavar="TEXT", help="names that contain this")
    parser.add_argument("--list", action="store_true", help="names and meanings of all")
    parser.add_argument("--memory", type=int, default=2000, metavar="MB", help="of a run, at most")
    parser.add_argument("--trail", type=Path, metavar="DIRECTORY", help="keep verifiers there")
    arguments = parser.parse_args()
    if arguments.list:
        return list_all()
    missing = missing_tools()
    if missing:
        print(f"check_model.py needs {' and '.join(missing)}", file=sys.stderr)
        return 2
    jobs = chosen(arguments)
    if not jobs:
        parser.error(f"no run and no bug has {arguments.only!r} in its name; see --list")
    failed = check(jobs, arguments.memory, arguments.trail)
    print(f"{len(jobs) - failed} of {len(jobs)} as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
