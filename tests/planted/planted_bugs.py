#!/usr/bin/env python3
"""Plants one bug at a time in a copy of the sources, builds it, and expects the tests to fail.

    tests/planted/planted_bugs.py                    all bugs of bugs.py
    tests/planted/planted_bugs.py --only merge       those whose name contains "merge"
    tests/planted/planted_bugs.py --check            only that each still fits the sources; seconds

The copy and its build lie in --work, so that each bug costs a few objects and two programs. Ends
with 1 if a bug survives, does not fit, or does not build.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bugs import BUGS

ROOT = Path(__file__).resolve().parents[2]
PRESET = "instrumented"
TARGETS = ("crash_explorer", "perdix_conformance")
TIMEOUT = 3600  # seconds; the explorer itself notices an opening that hangs


def commands_of(suite, build, images):
    """The commands of a suite, the cheapest first; one that fails is enough."""
    if suite == "conformance":
        return [[str(build / "tests/conformance/perdix_conformance"), "--gtest_brief=1"]]
    explorer = str(build / "tests/crash/crash_explorer")
    totals = (images // 64, images // 8, images)
    return [[explorer, "--jobs", "2", "--total", str(total)] for total in totals]


def misfits():
    """Bugs whose text is not in the sources exactly once."""
    return [b for b in BUGS if (ROOT / b.path).read_text().count(b.before) != 1]


def copy_sources(tree):
    """Brings the copy up to date; files that are right keep their time, so little is built."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        source, target = ROOT / name, tree / name
        if not source.is_file():
            continue
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def build(tree):
    """Returns what the compiler said if it failed, else nothing."""
    configure = ["cmake", "--preset", PRESET]
    make = ["cmake", "--build", f"build/{PRESET}", "-j2", "--target", *TARGETS]
    for step in (configure, make):
        result = subprocess.run(step, cwd=tree, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return result.stdout + result.stderr
    return ""


def first_line(output):
    """What a failing suite says about its failure, in a line."""
    lines = output.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("FAILED:"):
            problem = lines[i + 1].strip() if i + 1 < len(lines) else ""
            return f"{line[8:80]} {problem[:120]}"
        if "Failure" in line or "Assertion" in line:
            return line[:160]
    return lines[-1][:160] if lines else "no output"


def who_notices(tree, suites, images):
    """The suite that fails and what it says, or None."""
    for suite in suites:
        for command in commands_of(suite, tree / "build" / PRESET, images):
            try:
                result = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=TIMEOUT
                )
            except subprocess.TimeoutExpired:
                return suite, "does not end"
            if result.returncode != 0:
                return suite, first_line(result.stdout + result.stderr)
    return None


def plant(bug, tree, images):
    """Returns the report's line and whether the bug was noticed."""
    path = tree / bug.path
    sound = path.read_text()
    path.write_text(sound.replace(bug.before, bug.after))
    try:
        if errors := build(tree):
            return f"DOES NOT BUILD  {bug.name}\n{errors[-2000:]}", False
        noticed = who_notices(tree, bug.suites, images)
    finally:
        path.write_text(sound)
    if noticed is None:
        return f"SURVIVES        {bug.name} ({bug.path})", False
    return f"noticed by {noticed[0]:12} {bug.name} ({bug.path}): {noticed[1]}", True


def run(arguments):
    tree = arguments.work / "tree"
    copy_sources(tree)
    if errors := build(tree):
        sys.exit(f"the sources without a bug do not build:\n{errors[-4000:]}")
    # Without a bug nothing may fail, or every bug would seem to be noticed.
    if noticed := who_notices(tree, ("conformance", "explorer"), arguments.images // 8):
        sys.exit(f"{noticed[0]} fails without a bug: {noticed[1]}")
    chosen = [bug for bug in BUGS if arguments.only in bug.name]
    missed = 0
    for number, bug in enumerate(chosen, 1):
        start = time.monotonic()
        line, noticed = plant(bug, tree, arguments.images)
        missed += not noticed
        print(f"{number:3}/{len(chosen)} {line} [{time.monotonic() - start:.0f} s]", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} planted bugs noticed")
    return 1 if missed or not chosen else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="only that each bug fits the sources")
    parser.add_argument("--only", default="", help="only bugs whose name contains this")
    parser.add_argument("--work", type=Path, default=ROOT / "build/planted")
    parser.add_argument("--images", type=int, default=160000, help="of an exploration, at most")
    arguments = parser.parse_args()
    wrong = misfits()
    for bug in wrong:
        print(f"does not fit {bug.path}: {bug.name}")
    if arguments.check or wrong:
        print(f"{len(BUGS) - len(wrong)} of {len(BUGS)} planted bugs fit the sources")
        return 1 if wrong else 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
