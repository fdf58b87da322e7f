#!/usr/bin/env python3
"""Plants bugs in a copy of the sources and expects the crash-state explorer, or where a bug says so
the schedule fuzzer, the storm or a unit test, to notice each.

    tests/planted/planted_bugs.py                    all bugs
    tests/planted/planted_bugs.py --only merge       those whose name contains "merge"
    tests/planted/planted_bugs.py --by schedules     those that the schedule fuzzer must notice
    tests/planted/planted_bugs.py --check            only that each still fits the sources; seconds

All bugs are planted in one copy, which is built once: where a bug changes lines, the copy has both
versions, and the environment of a run says which bug it has, if any. Ends with 1 if a bug survives
or does not fit, or if the sources without a bug fail.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from bugs import BUGS

ROOT = Path(__file__).resolve().parents[2]
PRESET = "instrumented"
# The build should be quick; the programs need neither speed nor debugging information.
FLAGS = "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -D_GLIBCXX_ASSERTIONS"
VARIABLE = "PERDIX_PLANTED"
TIMEOUT = 3600  # seconds; the explorer itself notices an opening that hangs
SWITCH = f"""#pragma once
#include <cstdlib>

/// Whether this process has the bug of that number.
inline bool planted(int number) {{
  static const char* const wanted = std::getenv("{VARIABLE}");
  static const int bug = wanted != nullptr ? std::atoi(wanted) : -1;
  return bug == number;
}}
"""
# The program of each kind of subject, and where it is built.
PROGRAMS = {
    "explorer": ("crash_explorer", "tests/crash"),
    "schedules": ("schedule_fuzzer", "tests/linearizability"),
    "storm": ("perdix_storm", "tests/storm"),
}
UNIT = "unit"  # of those whose subject names a test program
_WHERE = re.compile(r"--engine (\S+) --domain (\S+) .*--threads (\d+)")
# The problem is in the line below, unless the process ended immediately.
_FAILED = re.compile(r"FAILED: (?:(.*)\. Replay:|.*\n +(.*))")
_FINDING = re.compile(r"FINDING in episode (\d+), (.*)")
_FAILED_CASE = re.compile(r"\[  FAILED  \] (\S+)")
_SCHEDULE = re.compile(r"(.*): (seed \d+) is not durably linearizable\n(.*)")

# The lines [begin, end) of a file, and what bug `number` has in their place.
Change = collections.namedtuple("Change", "begin end number lines")


def fits(bug):
    """Whether the bug's text is in the sources once, and does not begin inside an indentation."""
    sound = (ROOT / bug.path).read_text()
    before, found, after = sound.partition(bug.before)
    whole = not bug.before.startswith(" ") or before.endswith("\n")
    return found != "" and bug.before not in after and whole


def misfits():
    return [bug for bug in BUGS if not fits(bug) or declares(bug) or breaks_off(bug)]


def change_of(number, bug, lines):
    """The lines that a bug changes."""
    sound = "".join(lines)
    wrong = sound.replace(bug.before, bug.after).splitlines(keepends=True)
    begin = 0
    while lines[begin] == wrong[begin]:
        begin += 1
    after = 0
    while after < min(len(lines), len(wrong)) - begin and lines[-1 - after] == wrong[-1 - after]:
        after += 1
    return Change(begin, len(lines) - after, number, wrong[begin : len(wrong) - after])


def declares(bug):
    """Whether the lines that a bug changes are a declaration: others could not use it, since the
    two versions stand in blocks."""
    if "{planted}" in bug.after:
        return False
    lines = (ROOT / bug.path).read_text().splitlines(keepends=True)
    change = change_of(0, bug, lines)
    sound = "".join(lines[change.begin : change.end])
    one = sound.count(";") == 1
    return one and re.match(r"\s*(const|auto|static)\b[^;()]*?\b\w+ = ", sound) is not None


def breaks_off(bug):
    """Whether the lines that a bug changes end within a statement."""
    if "{planted}" in bug.after:
        return False
    lines = (ROOT / bug.path).read_text().splitlines(keepends=True)
    change = change_of(0, bug, lines)
    for some in (lines[change.begin : change.end], change.lines):
        code = "".join(line.split("//")[0] for line in some).strip()
        if code and code[-1] not in ";}":
            return True
    return False


def overlapping(changes):
    """Groups of changes whose lines overlap, by their place."""
    groups = []
    for change in sorted(changes):
        if groups and change.begin < max(other.end for other in groups[-1]):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def versions(lines, group):
    """The sound lines of a group, numbered as in the source, and those of each of its bugs, one of
    which is run."""
    begin, end = group[0].begin, max(change.end for change in group)
    text = ""
    for change in group:
        wrong = lines[begin : change.begin] + change.lines + lines[change.end : end]
        text += f"if (::planted({change.number})) {{\n{''.join(wrong)}}} else "
    sound = "".join(lines[begin:end])
    return begin, end, text + f"{{\n#line {begin + 1}\n{sound}}}\n#line {end + 1}\n"


def plant(text, bugs):
    """The source with all of these (number, bug) in it. Its lines keep their numbers, so that call
    sites have the same names without a bug: persist_mutation.py takes this explorer, too."""
    # Those that change a part of a statement say themselves where the switch is. One that is there
    # for the explorer of another subject, too, has several numbers.
    numbers = collections.defaultdict(list)
    for number, bug in bugs:
        if "{planted}" in bug.after:
            numbers[bug.before, bug.after].append(number)
    for (before, after), same in numbers.items():
        if before not in text:
            raise RuntimeError(f"another bug is in the way of {BUGS[same[0]].name}")
        switch = " || ".join(f"::planted({number})" for number in same)
        switched = after.replace("{planted}", f"({switch})")
        more = switched.count("\n") - before.count("\n")
        switched = switched.replace("\n", " ", more) if more > 0 else switched + "\n" * -more
        text = text.replace(before, switched)
    lines = text.splitlines(keepends=True)
    changes = [change_of(n, bug, lines) for n, bug in bugs if "{planted}" not in bug.after]
    for group in reversed(overlapping(changes)):
        begin, end, both = versions(lines, group)
        lines[begin:end] = [both]
    return '#include "planted.h"\n#line 1\n' + "".join(lines)


def write(path, content):
    """Files that are right keep their time, so little is built."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def bugs_by_file():
    """(number, bug) of each file that has some."""
    bugs_of = collections.defaultdict(list)
    for number, bug in enumerate(BUGS):
        bugs_of[bug.path].append((number, bug))
    return bugs_of


def collisions():
    """What is said of files whose bugs can't be planted beside each other."""
    said = []
    for path, bugs in bugs_by_file().items():
        try:
            plant((ROOT / path).read_text(), bugs)
        except RuntimeError as collision:
            said.append(f"{path}: {collision}")
    return said


def copy_sources(tree):
    """Brings the copy up to date, bugs included."""
    bugs_of = bugs_by_file()
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        source = ROOT / name
        if not source.is_file():
            continue
        content = source.read_bytes()
        if name in bugs_of:
            content = plant(content.decode(), bugs_of[name]).encode()
        write(tree / name, content)
        (tree / name).chmod(source.stat().st_mode)
    write(tree / "src/planted.h", SWITCH.encode())


def build(tree, jobs, programs):
    """Builds these programs. Returns what the compiler said if it failed, else nothing."""
    configure = ["cmake", "--preset", PRESET, FLAGS]
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


def run(arguments):
    tree = arguments.work / "tree"
    copy_sources(tree)
    chosen = [(n, bug) for n, bug in enumerate(BUGS) if wanted(bug, arguments)]
    subjects = {subject for _, bug in chosen for subject in bug.subjects}
    kinds = {kind_of(subject) for subject in subjects}
    tests = {subject.split()[1] for subject in subjects if kind_of(subject) == UNIT}
    targets = [PROGRAMS[kind][0] for kind in kinds if kind != UNIT]
    targets += [Path(test).name for test in tests]
    if errors := build(tree, arguments.jobs, sorted(targets)):
        sys.exit(f"the copy does not build:\n{errors[-4000:]}")
    programs = {UNIT: tree / "build" / PRESET}
    for kind in kinds - {UNIT}:
        name, folder = PROGRAMS[kind]
        programs[kind] = str(tree / "build" / PRESET / folder / name)
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
    parser.add_argument("--only", default="", help="only bugs whose file or name contains this")
    parser.add_argument("--by", choices=(*PROGRAMS, UNIT), help="only bugs for it to notice")
    parser.add_argument("--work", type=Path, default=ROOT / "build/planted")
    parser.add_argument("--images", type=int, default=32000, help="of an exploration, at most")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    wrong = misfits()
    for bug in wrong:
        print(f"does not fit {bug.path}: {bug.name}")
    collided = [] if wrong else collisions()
    for collision in collided:
        print(collision)
    if arguments.check or wrong or collided:
        print(f"{len(BUGS) - len(wrong)} of {len(BUGS)} planted bugs fit the sources")
        return 1 if wrong or collided else 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
