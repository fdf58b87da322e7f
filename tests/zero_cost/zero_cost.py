#!/usr/bin/env python3
"""Shows that the hooks of the instrumented build cost nothing in a normal one.

Compiles SpTree as a release is compiled and disassembles it, and does the same against copies of
pm/access.h and pm/persist.h from which the hooks are cut, and of all files that name steps:

1. Without the calls of hooks: every function must have the same machine code.
2. Also without the parameters that name call sites: the reading operations must have the same
   machine code. In writing operations a parameter that in the end becomes nothing can still tip the
   compiler's estimate of what is worth inlining; functions that differ are listed.
3. The normal object must contain no name of a call site's file; an instrumented one must, which
   shows that this would be seen.

tests/zero_cost/zero_cost.py [--compiler g++] [--objdump objdump] [--march x86-64-v2]
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
UNIT = "src/index/sptree/sptree.cc"
HEADERS = ["pm/access.h", "pm/persist.h"]
# A section for each function, so that a reference to one says which, and not where it lies.
FLAGS = ["-O3", "-DNDEBUG", "-std=c++20", "-fPIC", "-ffunction-sections"]

HOOK = r"(on_(read|write|flush|stream|publish_for_next|fence|commit)|before_write)\("
# A statement that only calls a hook, or what a hook adds to a condition.
CALL = re.compile(
    r"^ *(if \(!|if \(changed\) )?" + HOOK + r".*\n|(?<=if \()" + HOOK + r"[^()]*\) && ",
    re.MULTILINE)
SITE = re.compile(r"(,\s*)?Site site = Site::current\(\)|, site(?=\))|(?<=\()site(?=\))")
STEP = re.compile(r'^ *(else |if \(.*\) )?pm::on_step\("[^"]*"\);\n', re.MULTILINE)
LOOP = re.compile(r'^( *while \(.*\)) pm::on_step\("[^"]*"\);\n', re.MULTILINE)  # over a step
LEFT = re.compile(r"\b" + HOOK)
READERS = re.compile(r"::(get|contains|scan|find|collect)\(")


class Unknown(Exception):
    """The sources no longer look as this test knows them."""


def cut(text, *patterns):
    for pattern in patterns:
        text = pattern.sub("", text)
    if LEFT.search(text):
        raise Unknown("a call of a hook is left")
    return text


def write_headers(folder, *patterns):
    """Copies of the headers without what the patterns match, in a folder to be searched first."""
    for name in HEADERS:
        text = (SOURCES / "src" / name).read_text()
        without = cut(text, *patterns)
        if without == text:
            raise Unknown(f"nothing was cut from {name}")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(without)


def write_without_steps(folder):
    """Copies of the files of engines without the names of steps."""
    count = 0
    for source in sorted((SOURCES / "src").rglob("*.*")):
        if source.suffix not in (".h", ".cc") or source.is_relative_to(SOURCES / "src/pm"):
            continue
        if source.stem.endswith("_test"):
            continue
        text = source.read_text()
        if "on_step(" not in text or source.is_relative_to(SOURCES / "src/testing"):
            continue
        without = STEP.sub("", LOOP.sub(r"\1 {}\n", text))
        if "on_step(" in without:
            raise Unknown(f"a step is left in {source}")
        path = folder / source.relative_to(SOURCES / "src")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(without)
        count += 1
    unit = folder / Path(UNIT).relative_to("src")
    if count == 0 or not unit.is_file():
        raise Unknown(f"{UNIT} names no step")
    return unit


def compile_unit(options, target, first=None, more=(), unit=SOURCES / UNIT):
    command = [options.compiler, *FLAGS, *more]
    if options.march:
        command.append(f"-march={options.march}")
    if first:
        command.append(f"-I{first}")
    command += [f"-I{SOURCES}/src", f"-I{SOURCES}/include", "-c", str(unit)]
    subprocess.run([*command, "-o", str(target)], check=True)


def functions(options, binary):
    """Instructions by function, without addresses."""
    flags = ["-d", "-r", "-C", "--no-show-raw-insn", "--no-addresses"]
    text = subprocess.run([options.objdump, *flags, str(binary)], check=True,
                          capture_output=True, text=True).stdout
    found = {}
    code = []
    for line in text.splitlines():
        if head := re.match(r"^<(.*)>:$", line):
            code = found.setdefault(head[1], [])
        elif line.startswith("\t"):
            code.append(line.strip())
    count = sum(map(len, found.values()))
    if len(found) < 20 or count < 1000:
        raise Unknown(f"only {len(found)} functions with {count} instructions")
    return found


def differing(some, others):
    names = some.keys() | others.keys()
    return sorted(name for name in names if some.get(name) != others.get(name))


def show_difference(name, with_hooks, without):
    ours, theirs = with_hooks.get(name, []), without.get(name, [])
    print(f"  {name}: {len(ours)} instructions with the seam, {len(theirs)} without")
    for index, (one, other) in enumerate(zip(ours, theirs)):
        if one != other:
            print(f"    the first that differs, number {index}:\n      {one}\n      {other}")
            break


def names_call_sites(binary):
    return re.search(rb"src/[a-z_/]+\.(cc|h)\0", binary.read_bytes()) is not None


def compare_sites(options, folder):
    """Returns the number of findings."""
    compile_unit(options, folder / "instrumented.o", more=["-DPERDIX_INSTRUMENTED", "-O0"])
    if not names_call_sites(folder / "instrumented.o"):
        raise Unknown("the instrumented object names no call site")
    if names_call_sites(folder / "normal.o"):
        print("the normal object contains the name of a call site's file")
        return 1
    print("the normal object names no call site, the instrumented one does")
    return 0


def compare_functions(options, folder):
    """Returns the number of findings."""
    normal = functions(options, folder / "normal.o")
    findings = 0
    for title, patterns, required in [
        ("calls of hooks", [CALL], lambda name: True),
        ("calls of hooks and names of call sites", [CALL, SITE], READERS.search),
    ]:
        headers = folder / title.replace(" ", "-")
        write_headers(headers, *patterns)
        unit = write_without_steps(headers)
        compile_unit(options, folder / "cut.o", headers, unit=unit)
        without = functions(options, folder / "cut.o")
        different = differing(normal, without)
        wrong = [name for name in different if required(name)]
        must = sum(1 for name in normal if required(name))
        if must == 0:
            raise Unknown("no function of the kind that must be the same was found")
        print(f"without {title}: {len(normal) - len(different)} of {len(normal)} functions are the "
              f"same; of the {must} that must be, {len(wrong)} differ")
        for name in different:
            show_difference(name, normal, without)
        findings += len(wrong)
    return findings


def compare(options, folder):
    """Returns the number of findings."""
    compile_unit(options, folder / "normal.o")
    return compare_functions(options, folder) + compare_sites(options, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--march", default="x86-64-v2", help="empty: the compiler's default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perdix-zero-cost-") as folder:
        try:
            findings = compare(options, Path(folder))
        except Unknown as error:
            sys.exit(f"zero_cost: {error}: this test no longer knows the seam")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
