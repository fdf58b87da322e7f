"""Which tests a campaign tries for a planted bug, in which order: first those of the quick suite
(`make test`) that concern it, each as ctest runs it, then what the bug's own subjects say, which
belong to the deep suite.

A test concerns a bug if both name the same engine or layer: the bug by its file and its subjects,
the test by its engine or its program. What one test does for all engines is tried for the bug's."""

import json
import re
import subprocess
from collections import namedtuple
from pathlib import Path

# One run, of the quick suite or of the deep one: `test` names it, `variables` are pairs for its
# environment.
Step = namedtuple("Step", "suite test kind command variables")
# A test of the quick suite.
Test = namedtuple("Test", "name kind command variables about")

QUICK, DEEP = "quick", "deep"
LINES = ("--domain", "memory_controller")
# What each kind counts in; the order is the one in which a bug without preference tries them.
UNITS = {
    "explorer": "images",
    "schedules": "schedules",
    "unit": "s",
    "conformance": "s",
    "kill": "s",
    "storm": "s",
}
# Where a build has the program of a kind; that of a unit test is named by the bug.
PROGRAMS = {
    "explorer": "tests/crash/crash_explorer",
    "schedules": "tests/linearizability/schedule_fuzzer",
    "conformance": "tests/conformance/perdix_conformance",
    "kill": "tests/kill/perdix_kill",
    "storm": "tests/storm/perdix_storm",
}
# Of an exploration. The first two where lines are written back: nearly all that is noticed is
# noticed there.
DEEP_IMAGES = ((4000, LINES), (32000, LINES), (32000, ()))
ENGINES = ("cceh", "elimda", "fastfair", "nbtree", "skiplist", "sptree", "tips")
# These run with two engines for all.
_FAULTS = ("failed_sync_test", "lost_page_test", "allocation_test")

_NAME = re.compile(r"[a-z_0-9]+")
_RUNS = re.compile(r" ?--runs \d+")


def _option(words, option):
    return words[words.index(option) + 1] if option in words else ""


def tests_of(listing):
    """The tests of a listing of ctest that may notice a bug."""
    kinds = {Path(program).name: kind for kind, program in PROGRAMS.items()}
    for test in json.loads(listing)["tests"]:
        command = test.get("command", [""])
        program = Path(command[0]).name
        kind = kinds.get(program, "unit" if program.endswith("_test") else "")
        if not kind:
            continue
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        variables = tuple(tuple(v.split("=", 1)) for v in properties.get("ENVIRONMENT", []))
        about = _option(command, "--engine") or program.removesuffix("_test")
        if program in _FAULTS:
            about = "sptree"
        yield Test(test["name"], kind, tuple(command), variables, _NAME.match(about)[0])


def read_tests(tree):
    """The quick suite of a tree that is configured for it."""
    command = ["ctest", "--preset", "quick", "--show-only=json-v1"]
    listing = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    return list(tests_of(listing.stdout))


def kind_and_rest(subject):
    """The kind of a bug's subject, and its rest: what to explore, a command line, or a program and
    its cases."""
    first, _, rest = subject.partition(" ")
    return (first, rest) if rest else ("explorer", subject)


def topics_of(bug):
    """The engines and layers that a bug names, that of its file first."""
    parts = bug.path.removeprefix("src/").removeprefix("index/").split("/")
    topics = [{"common": "index_common"}.get(parts[0], parts[0]) if len(parts) > 1 else "index"]
    for subject in bug.subjects:
        kind, rest = kind_and_rest(subject)
        words = rest.split()
        topic = {"explorer": rest, "unit": Path(words[0]).name.removesuffix("_test")}.get(kind)
        topic = topic or _option(words, "--engine")
        if topic:
            topics.append(_NAME.match(topic)[0])
    return list(dict.fromkeys(topics))


def _part_for(test, topics):
    """What of a test concerns the topics, as a command; None if nothing."""
    engines = [topic for topic in topics if topic in ENGINES] or ["sptree"]
    if test.kind == "kill":
        return test.command
    if test.kind == "conformance":
        kinds = re.search(r"\*(_\w+_memory_controller\.\*)(.*)", test.command[-1])
        chosen = ":".join(f"{engine}*{kinds[1]}" for engine in engines)
        return (*test.command[:-1], f"--gtest_filter={chosen}{kinds[2]}")
    concerned = any(test.about == topic or test.about.startswith(f"{topic}_") for topic in topics)
    return test.command if concerned else None


def _with_cases(command, cases):
    """The command of a test program for some of its cases alone."""
    left_out = command[-1].partition("=")[2]
    return (*command[:-1], f"--gtest_filter={cases}{left_out}")


def quick_steps(bug, tests):
    """What of the quick suite concerns a bug: the kinds of its subjects before others, and the
    cases that it names before whole programs."""
    topics = topics_of(bug)
    preferred = list(dict.fromkeys(kind_and_rest(subject)[0] for subject in bug.subjects))
    cases = [rest.split() for kind, rest in map(kind_and_rest, bug.subjects) if kind == "unit"]
    steps = []
    for test in tests:
        for program, some in cases:
            if test.kind == "unit" and test.command[0].endswith("/" + program):
                command = _with_cases(test.command, some)
                steps.append(Step(QUICK, test.name, test.kind, command, test.variables))
        if command := _part_for(test, topics):
            steps.append(Step(QUICK, test.name, test.kind, command, test.variables))
    kinds = preferred + [kind for kind in UNITS if kind not in preferred]
    return sorted(steps, key=lambda step: kinds.index(step.kind))


def deep_steps(bug, path_of):
    """What the subjects of a bug say."""
    for images, where in DEEP_IMAGES:
        for kind, rest in map(kind_and_rest, bug.subjects):
            if kind == "explorer":
                command = (path_of(PROGRAMS[kind]), "--engine", rest, *where)
                command += ("--total", str(images))
                yield Step(DEEP, f"{kind} {rest}", kind, command, ())
    for kind, rest in map(kind_and_rest, bug.subjects):
        words = rest.split()
        if kind == "unit":
            command = (path_of(words[0]), f"--gtest_filter={words[1]}")
            yield Step(DEEP, f"{Path(words[0]).name} {words[1]}", kind, command, ())
        elif kind != "explorer":
            more = ("--findings", "1") if kind == "storm" else ()
            command = (path_of(PROGRAMS[kind]), *words, *more)
            yield Step(DEEP, f"{kind} {_RUNS.sub('', rest)}", kind, command, ())


def programs_of(bug):
    """The programs that the deep steps of a bug need, by their place in a build."""
    kinds = [kind_and_rest(subject) for subject in bug.subjects]
    return {PROGRAMS.get(kind) or rest.split()[0] for kind, rest in kinds}
