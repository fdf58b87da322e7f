"""Whether the sources with planted bugs compile. Both versions of a line stand in one file, so one
look at a source tells of all its bugs, and of the source without any. Only files with bugs are
copied: the compiler finds them before the others."""

import concurrent.futures
import os
import random
import re
import shutil
import subprocess

from bug import ROOT
from bugs import BUGS
from plant import bugs_by_file, number_at, plant_sources

# As in the preset `instrumented`, but for what only code generation needs.
OPTIONS = "-std=c++20 -march=native -DFMT_SHARED -DPERDIX_INSTRUMENTED -D_GLIBCXX_ASSERTIONS"
FOLDERS = ("src/", "include/", "")  # below which includes are looked for
_INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)
_ERROR = re.compile(r"^(\S+?):(\d+)(?::\d+)?: (?:fatal )?error: (.*)", re.MULTILINE)


def included_files(path, known):
    """The source and all of ours that it includes, by their paths in the repository."""
    if path not in known:
        known[path] = {path}
        for name in _INCLUDE.findall((ROOT / path).read_text()):
            for folder in FOLDERS:
                if (ROOT / folder / name).is_file():
                    known[path] |= included_files(f"{folder}{name}", known)
    return known[path]


def sources_to_compile(files):
    """Those of the files that are sources, and the fewest that include the headers among them."""
    known = {}
    left = set(files)
    chosen = sorted(path for path in left if path.endswith(".cc"))
    for path in chosen:
        left -= included_files(path, known)
    paths = [path for folder in ("src", "plugins") for path in (ROOT / folder).rglob("*.cc")]
    others = sorted(str(path.relative_to(ROOT)) for path in paths)
    others = [path for path in others if not path.endswith("_test.cc")]
    while left:
        best = max(others, key=lambda path: len(left & included_files(path, known)))
        if not left & included_files(best, known):
            raise RuntimeError(f"no source includes {sorted(left)}")
        chosen.append(best)
        left -= included_files(best, known)
    return chosen


def compile_source(tree, path):
    """What the compiler says about a source of the copy, each error with the bug that it is of."""
    command = [os.environ.get("CXX", "c++"), *OPTIONS.split(), "-fsyntax-only", "-w"]
    source = tree / path if (tree / path).is_file() else ROOT / path
    command += [f"-I{folder}/{part}" for folder in (tree, ROOT) for part in FOLDERS]
    command.append(str(source))
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [
        f"{told(os.path.relpath(file, tree), int(line))}: {what}"
        for file, line, what in _ERROR.findall(result.stderr)
    ]
    return said if said or result.returncode == 0 else [result.stderr[-1000:]]


def told(path, line):
    """The place of an error, and which bugs it may be of."""
    number = number_at(line)
    if number is not None:
        return f"{path}: planted bug {BUGS[number].name!r}"
    near = [bug.name for _, bug in bugs_by_file()[path] if has_line(bug, line)]
    return f"{path}:{line}" + (f", changed by {near}" if near else "")


def has_line(bug, line):
    """Whether a line is among those which the bug's text takes in the source."""
    sound = (ROOT / bug.path).read_text()
    first = sound.count("\n", 0, sound.find(bug.before)) + 1
    return first <= line <= first + bug.before.count("\n")


def check(tree, jobs, sample, seed, chosen=BUGS):
    """Compiles the sources that have the chosen bugs, or a sample of so many of them. All others
    of their bugs are in them, too. Returns 1 if one fails, or if there are none."""
    shutil.rmtree(tree, ignore_errors=True)  # it may have files that have no bugs any more
    plant_sources(tree)
    # Those of examples need packages that may be missing: their test compiles them.
    files = {bug.path for bug in chosen if not bug.path.startswith("examples/")}
    sources = sources_to_compile(files)
    if sample:
        sources = random.Random(seed).sample(sources, min(sample, len(sources)))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda path: compile_source(tree, path), sources)
        for done, (path, errors) in enumerate(zip(sources, answers), 1):
            failed += bool(errors)
            print(f"{done} of {len(sources)}: {path}: {'FAILS' if errors else 'compiles'}")
            print("".join(f"    {error}\n" for error in errors), end="", flush=True)
    print(f"{len(sources) - failed} of {len(sources)} sources with planted bugs compile")
    return 1 if failed or not sources else 0
