#!/usr/bin/env python3
"""Plants bugs in a copy of the sources and expects the crash-state explorer, or where a bug says so
the schedule fuzzer, the storm or a unit test, to notice each.

    tests/planted/planted_bugs.py                    all bugs
    tests/planted/planted_bugs.py --only merge       those whose name contains "merge"
    tests/planted/planted_bugs.py --by schedules     those that the schedule fuzzer must notice
    tests/planted/planted_bugs.py --check            only that each still fits the sources; seconds
    tests/planted/planted_bugs.py --syntax           only that the sources with the bugs compile;
                                                     with --only or --by those with such bugs
    tests/planted/planted_bugs.py --campaign         which test notices each first
    tests/planted/planted_bugs.py --page             docs/planted-bugs.md from the campaign's table

All bugs are planted in one copy, which is built once: where a bug changes lines, the copy has both
versions, and the environment of a run says which bug it has, if any. Ends with 1 if a bug survives
or does not fit, or if the sources without a bug fail.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import campaign
import first_notice
import ladder
import syntax
from bug import ROOT
from bugs import BUGS
from ladder import PROGRAMS
from plant import VARIABLE, collisions, copy_sources, misfit_of

PRESET = "quick"
TIMEOUT = 3600  # seconds; the explorer itself notices an opening that hangs
UNIT = "unit"  # of those whose subject names a test program
QUICK_SUITE = {"tests-unit", "tests-quick"}  # targets
_WHERE = re.compile(r"--engine (\S+) --domain (\S+) .*--threads (\d+)")
# The problem is in the line below, unless the process ended immediately.
_FAILED = re.compile(r"FAILED: (?:(.*)\. Replay:|.*\n +(.*))")
_FINDING = re.compile(r"FINDING in episode (\d+), (.*)")
_FAILED_CASE = re.compile(r"\[  FAILED  \] (\S+)")
_SCHEDULE = re.compile(r"(.*): (seed \d+) is not durably linearizable\n(.*)")


def build(tree, jobs, programs):
    """Builds these programs. Returns what the compiler said if it failed, else nothing."""
    configure = ["cmake", "--preset", PRESET]
    make = ["cmake", "--build", f"build/{PRESET}", f"-j{jobs}", "--target", *programs]
    for step in (configure, make):
        result = subprocess.run(step, cwd=tree, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return result.stdout + result.stderr
    return ""


def explore(explorer, number, subject, images, jobs=1):
    """What a failing exploration says about its failure, in a line; None if all was sound."""
    command = [explorer, "--engine", subject, "--total", str(images), "--jobs", str(jobs)]
    environment = os.environ | {VARIABLE: str(number)}
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return f"{subject}: does not end"
    if result.returncode == 0:
        return None
    output = result.stdout + result.stderr
    failure = _FAILED.search(output)
    # A signal is a failure too, whether or not there was time to report it.
    if failure is None and result.returncode > 0:
        raise RuntimeError(f"can't explore {subject or 'anything'}: {output[-1000:]}")
    where = _WHERE.search(output)
    place = "{} in {}, {} threads".format(*where.groups()) if where else subject
    return f"{place}: {(failure.group(1) or failure.group(2))[:110] if failure else 'no output'}"


def kind_of(subject):
    """Which kind of program takes the subject."""
    first = subject.split()[0] if " " in subject else ""
    return first if first in (*PROGRAMS, UNIT) else "explorer"


def run_command(program, number, subject, more=()):
    """What a program prints to which a subject is its command line; None if nothing is wrong."""
    environment = os.environ | {VARIABLE: str(number)}
    command = [program, *subject.split()[1:], *more]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    return None if result.returncode == 0 else result


def let_storm(storm, number, subject):
    """The first finding of a storm, in a line; None if there is none. That episode alone must be
    sound without the bug: a whole storm without it takes as long as one that finds nothing."""
    result = run_command(storm, number, subject, ["--findings", "1"])
    if result is None:
        return None
    finding = _FINDING.search(result.stdout)
    if finding is None:
        raise RuntimeError(f"no storm: {(result.stdout + result.stderr)[-1000:]}")
    episode, what = finding.groups()
    if sound := run_command(storm, -1, subject, ["--episode", episode]):
        raise RuntimeError(f"without {BUGS[number].name!r} there is a finding: {sound.stdout}")
    return f"the storm in episode {episode}, {what[:160]}"


def try_schedules(fuzzer, number, subject):
    """What the first schedule that fails shows, in a line; None if there is none."""
    try:
        result = run_command(fuzzer, number, subject)
    except subprocess.TimeoutExpired:
        return f"{subject}: does not end"
    if result is None:
        return None
    failure = _SCHEDULE.search(result.stdout)
    # A signal is a failure too, whether or not there was time to report it.
    if failure is None and result.returncode > 0:
        raise RuntimeError(f"no schedules: {(result.stdout + result.stderr)[-1000:]}")
    if failure is None:
        return f"{subject}: signal {-result.returncode}"
    return f"{failure[1]}, {failure[2]}: {failure[3][:110]}"


def try_unit(build_folder, number, subject):
    """The first case of a test program that fails, in a line; None if there is none."""
    _, program, cases = subject.split()
    command = [str(build_folder / program), f"--gtest_filter={cases}"]
    environment = os.environ | {VARIABLE: str(number)}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    if result.returncode == 0:
        return None
    failed = _FAILED_CASE.search(result.stdout)
    return f"{program}: {failed[1] if failed else f'exit status {result.returncode}'}"


def notice(programs, number, subject, images):
    """What the program of a subject finds with the bug of that number, in a line; None if
    nothing."""
    kind = kind_of(subject)
    if kind == "storm":
        return let_storm(programs[kind], number, subject)
    if kind == "schedules":
        return try_schedules(programs[kind], number, subject)
    if kind == UNIT:
        return try_unit(programs[kind], number, subject)
    return explore(programs[kind], number, subject, images)


def who_notices(programs, number, bug, images):
    """All subjects of the explorer with few images before any with many; then the others."""
    explored = [subject for subject in bug.subjects if kind_of(subject) == "explorer"]
    for total in (images // 64, images // 8, images):
        for subject in explored:
            if failure := notice(programs, number, subject, total):
                return failure
    for subject in bug.subjects:
        if subject not in explored:
            if finding := notice(programs, number, subject, images):
                return finding
    return None


def failure_without_bug(programs, chosen, arguments):
    """Without a bug nothing may fail, or every bug would seem to be noticed."""
    if "explorer" in programs:
        explorer = programs["explorer"]
        if failure := explore(explorer, -1, "", arguments.images // 4, arguments.jobs):
            return failure
    subjects = {subject for _, bug in chosen for subject in bug.subjects}
    for subject in sorted(subjects):
        if kind_of(subject) == "schedules":
            if finding := notice(programs, -1, subject, 0):
                return f"{finding} ({subject})"
    return None


def wanted(bug, arguments):
    """Whether the options ask for this bug."""
    kinds = {kind_of(subject) for subject in bug.subjects}
    named = arguments.only in f"{bug.path} {bug.name}"
    return named and (not arguments.by or arguments.by in kinds)


def path_of(tree, program):
    """Where the copy has the program of a kind, or a test program."""
    return str(tree / "build" / PRESET / PROGRAMS.get(program, program))


def build_copy(arguments, programs):
    """Makes and builds the copy. Returns where it is."""
    tree = arguments.work / "tree"
    copy_sources(tree)
    targets = {Path(path_of(tree, program)).name for program in programs}
    if errors := build(tree, arguments.jobs, sorted(targets)):
        sys.exit(f"the copy does not build:\n{errors[-4000:]}")
    return tree


def run_campaign(arguments):
    """Finds out which test notices each bug first. Returns 1 if a test fails without a bug."""
    numbers = [n for n, bug in enumerate(BUGS) if wanted(bug, arguments)]
    left = list(campaign.left_of(numbers, first_notice.read_table(), arguments.again))
    print(f"{len(left)} of {len(numbers)} bugs are not in the table")
    needed = set().union(*(ladder.programs_of(BUGS[number]) for number in numbers))
    tree = build_copy(arguments, needed | QUICK_SUITE)
    climber = campaign.Ladder(ladder.read_tests(tree), lambda program: path_of(tree, program))
    return campaign.run(numbers, left, arguments.jobs, climber)


def run(arguments):
    chosen = [(n, bug) for n, bug in enumerate(BUGS) if wanted(bug, arguments)]
    subjects = {subject for _, bug in chosen for subject in bug.subjects}
    kinds = {kind_of(subject) for subject in subjects} - {UNIT}
    tests = {subject.split()[1] for subject in subjects if kind_of(subject) == UNIT}
    tree = build_copy(arguments, kinds | tests)
    programs = {UNIT: tree / "build" / PRESET}
    programs |= {kind: path_of(tree, kind) for kind in kinds}
    if failure := failure_without_bug(programs, chosen, arguments):
        sys.exit(f"without a bug there is a failure: {failure}")
    start = time.monotonic()
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        answers = pool.map(lambda b: who_notices(programs, *b, arguments.images), chosen)
        for (_, bug), answer in zip(chosen, answers):
            missed += answer is None
            verdict = f"noticed by {answer}" if answer else "SURVIVES"
            print(f"{bug.name} ({bug.path})\n    {verdict}", flush=True)
    noticed = len(chosen) - missed
    print(f"{noticed} of {len(chosen)} planted bugs noticed, {time.monotonic() - start:.0f} s")
    return 1 if missed or not chosen else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="only that each bug fits the sources")
    parser.add_argument("--syntax", action="store_true", help="only that they compile")
    parser.add_argument("--sample", type=int, default=0, help="sources of --syntax; default all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--campaign", action="store_true", help="which test notices each first")
    parser.add_argument("--again", action="store_true", help="also those that the table has")
    parser.add_argument("--page", action="store_true", help="write the page about the table")
    parser.add_argument("--only", default="", help="only bugs whose file or name contains this")
    parser.add_argument("--by", choices=(*PROGRAMS, UNIT), help="only bugs for it to notice")
    parser.add_argument("--work", type=Path, default=ROOT / "build/planted")
    parser.add_argument("--images", type=int, default=32000, help="of an exploration, at most")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.page:
        rows = first_notice.read_table()
        left = campaign.left_of(range(len(BUGS)), rows, False)
        older = sum(first_notice.key_of(BUGS[number]) in rows for number in left)
        page = first_notice.page(sorted(rows.values()), len(BUGS), older)
        first_notice.PAGE.write_text(page)
        return 0
    wrong = {bug.name: misfit for bug in BUGS if (misfit := misfit_of(bug))}
    for name, misfit in wrong.items():
        print(f"does not fit: {name}: {misfit}")
    collided = [] if wrong else collisions()
    for collision in collided:
        print(collision)
    if arguments.check or wrong or collided:
        print(f"{len(BUGS) - len(wrong)} of {len(BUGS)} planted bugs fit the sources")
        return 1 if wrong or collided else 0
    if arguments.syntax:
        tree = arguments.work / "syntax"
        chosen = [bug for bug in BUGS if wanted(bug, arguments)]
        return syntax.check(tree, arguments.jobs, arguments.sample, arguments.seed, chosen)
    if arguments.campaign:
        return run_campaign(arguments)
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
