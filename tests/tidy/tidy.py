#!/usr/bin/env python3
"""The style of perdix, as a program: which layer may include which, where flushes may stand, what
a source file or a document looks like. Reports `file:line: [rule] message` and fails if there is
anything to report.

    tests/tidy/tidy.py [--root DIRECTORY] [--rules]
"""

import argparse
import functools
import os
import re
import sys
from pathlib import Path

from source import Source

# Which layers of src/ a layer may include, besides itself. `index/common` is what engines share;
# `index/*` stands for each engine, and engines do not know each other. `index` is what lies in
# src/index/ itself and chooses an engine at run time.
GENERATED = "engine_list.h"  # the one header that the build makes (cmake/engines.cmake)

LAYERS = {
    "util": "",
    "pm": "util",
    "epoch": "util pm",
    "art": "util pm epoch",
    "alloc": "util pm epoch",
    "pool": "util pm epoch alloc",
    "wal": "util pm epoch alloc pool",
    "index/common": "util pm epoch art alloc pool wal",
    "index/sptree": "util pm epoch art alloc pool wal index/common index/fastfair",
    "index/nbtree": "util pm epoch art alloc pool wal index/common index/fastfair",
    "index/elf_table": "util pm epoch alloc pool index/common index/fastfair index/elf",
    "index/*": "util pm epoch art alloc pool wal index/common",
    "tips": "util pm epoch art alloc pool wal",
    "index": "util pm epoch art alloc pool wal tips index/common index/*",
    "testing": "util pm epoch art alloc pool wal tips index index/common index/*",
}

# Class names that may be in any number of namespaces: what an index is made of, and what every
# format in PM has.
COMMON_CLASSES = set(
    "Block BufferShape Directory Entry Header Leaf Map Meta Node Pair Record Root Shape Table Tree "
    "WordTree".split()
)

# Classes that still have more private declarations than MAX_PRIVATE, and how many at most. A class
# that is broken up leaves the table.
BIG_CLASSES = {}

# Parts that still include the header of their engine's class, by engines.
PARTS_THAT_POINT_BACK = {
    "elf": "build.cc check.cc recovery.cc",
    "elf_table": "build.cc check.cc recovery.cc",
    "tips_of": "check.cc foreign.cc recovery.cc trial.h",
}

MAX_LINE = 100
MAX_FILE = 700
MAX_FUNCTION = 60
MAX_NAMESPACES = 2
MAX_PRIVATE = 40
INTERPOSER = "tests/storm/faults.cc"
FOLDERS = (
    "include", "src", "plugins", "tests", "tools", "bench", "bindings", "cmake", "scripts", "docs"
)
NOT_OURS = {"build", ".git", "__pycache__"}

# Where a test source may wait by the clock, or for as long as it takes, each with the reason.
# Elsewhere util/test_eventually.h waits for a state, and says for which when it gives up.
WAITS = {
    "src/pool/ownership_test.cc": "kills children at random moments; asserts nothing about them",
    "src/testing/linearizability/scheduler.cc": "looks at threads that sleep; wakes up to do so",
    "src/testing/turns.cc": "looks at threads that sleep; wakes up to do so",
    "src/testing/session.cc": "threads that begin together; all of them come",
    "src/util/test_eventually.h": "the helper",
    "tests/crash/fake_maps.h": "a ticket lock, which is what is tested",
    "tests/kill/lane.cc": "kills children at random moments; a hang is a problem with a name",
    "tests/storm/": "random pauses are what it does; a hang is a finding with a name",
    "tests/tips_c/kill_test.py": "kills children at random moments; a hang is a finding",
    "tests/tool/elf_test.py": "kills children at random moments; asserts nothing about them",
    "tests/tool/tool_test.py": "wait_until_read() says for what it has waited",
    "bindings/valkey/tests/": "has servers.py to wait for servers",
}
# Where a test source may name a folder that all programs share: to make a new one in it.
SHARED_FOLDERS = {
    "src/util/test_directory.h": "the helper",
    "tests/tips_c/kill_test.py": "makes a new folder in it",
    "tests/tool/files_test.py": "makes a new folder in it",
    "bindings/valkey/tests/servers.py": "makes a new folder in it",
    "tests/tidy/tidy_test.py": "plants violations of the rule",
}

_FLUSH = re.compile(
    r"\b(?:clwb|clflush|clflushopt|sfence|mfence|msync|pmem2?_\w+)\s*\("
    r"|\b_mm_(?:clwb|clflush|clflushopt|sfence|mfence|stream_\w+)\b"
    r"|\b__builtin_ia32_(?:clwb|clflush|clflushopt|sfence|mfence)\b"
)
_ASM = re.compile(r"\b(?:asm|__asm__)\b")
_ASM_FLUSH = re.compile(r"\b(?:clwb|clflush|clflushopt|sfence|mfence)\b")
_PROCESS = re.compile(
    r"(?<![\w.>])(?:std::|::)?"
    r"(?:_?exit|_Exit|quick_exit|abort|terminate|v?f?printf|puts|perror)\s*\("
    r"|\bstd::(?:cout|cerr|clog)\b"
)
_PERSIST = re.compile(r"(?:(?:\.|->)\s*|^[ \t]*)(flush|fence|persist|publish)\s*\(", re.MULTILINE)
_STRUCT = re.compile(r"\b(?:struct|class)\s+(?:alignas\s*\([^()]*\)\s*)?(\w+)\b[^;{}()=]*{")
_UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
_CITED_FILE = re.compile(r"\b(?:sptree|nbtree|tips|elf|elimda)\.t" + r"xt\b")
_DOCUMENT = re.compile(r"\bdocs/[\w./-]+\.md\b")
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w.*/-]*")
_FILE_NAME = re.compile(r"[\w./-]+\.(?:h|cc|py|md)")
_WAIT = re.compile(
    r"\b(sleep_for|sleep_until|wait_for|wait_until|usleep|nanosleep|sleep)\s*\("
    r"|\bwhile\s*\([^;{}]*\)\s*\{?\s*(std::this_thread::yield|sched_yield)\s*\("
)
_PYTHON_WAIT = re.compile(r"\btime\.(sleep)\(")
_SHARED_FOLDER = re.compile(r"(?<![\w.])/(?:dev/shm|tmp)\b")
_PUBLIC = re.compile(r"perdix/[\w/]+\.h|std(?:def|int)\.h|[a-z_0-9]+")
_ENGINE_FILE = re.compile(r"src/index/(\w+)/([\w.]+)")
_THE_SAME = re.compile(r"(?P<own>^\s*)?///<? The same\b")
_INSTRUMENTED = re.compile(r"\bPERDIX_" + r"INSTRUMENTED\b")


# --- Where a file belongs -------------------------------------------------------------------------


def layer_of(path):
    """The layer of a path below src/ ('' for src/ itself): 'pm', 'index', 'index/sptree'."""
    folders = path.split("/")[:-1]
    return "/".join(folders[:2]) if folders[:1] == ["index"] else "/".join(folders[:1])


def is_test(source):
    is_shared = source.path.rsplit("/", 1)[-1].startswith("test_") and source.is_header
    return is_shared or source.path.endswith(("_test.cc", "_bench.cc"))


def is_of_a_test(source):
    """Whether only tests have it: the sources of their programs and instruments, too."""
    name = source.path.rsplit("/", 1)[-1]
    return (
        source.path.startswith(("tests/", "src/testing/"))
        or "/tests/" in source.path
        or name.endswith(("_test.cc", "_test.py"))
        or (source.is_header and name.startswith("test_"))
    )


def allowed_in(source, places):
    """Whether the source is one of the places, or in one that ends in '/'."""
    return any(
        source.path == place or (place.endswith("/") and source.path.startswith(place))
        for place in places
    )


def in_library(source):
    folders = ("src/", "include/", "plugins/")
    return source.is_cxx and source.path.startswith(folders) and not is_test(source)


def outside_pm(source):
    return not source.path.startswith("src/pm/")


def names_of(layer):
    """By which a row of the table may allow a layer: its own, and the one of all engines."""
    engine = layer.startswith("index/") and layer != "index/common"
    return {layer, "index/*"} if engine else {layer}


def row_of(layer):
    """The row of the table for a layer; None if there is none."""
    if layer in LAYERS:
        return layer
    return "index/*" if layer.startswith("index/") else None


# --- Rules: each yields (line, message) -----------------------------------------------------------


def include_direction(source):
    """a layer includes only the layers that the table allows it"""
    if not source.path.startswith("src/") or not source.is_cxx:
        return
    layer = layer_of(source.path[len("src/") :])
    for line, quoted, target in source.includes:
        if quoted:
            if target == GENERATED or (is_test(source) and target.startswith("plugins/")):
                continue
            if not (source.root / "src" / target).is_file():
                yield line, f'"{target}" is not a path below src/'
                continue
            other = layer_of(target)
        else:
            other = layer_of_public_header(source.root, target)
        if other is None or other == layer:
            continue
        if layer == "":
            yield line, f"files in src/ itself belong to no layer and may not include {other}"
        elif row_of(layer) is None:
            yield line, f"layer {layer} is not in the table of tests/tidy/tidy.py"
        elif not names_of(other) & set(LAYERS[row_of(layer)].split()):
            yield line, f"layer {layer} may not include {other} ({target})"


def layer_of_public_header(root, target):
    """The layer that a header of include/perdix/ speaks for; None for those that all may use."""
    if not target.startswith("perdix/"):
        return None
    stem = target[len("perdix/") : -len(".h")].removeprefix("papers/")
    if stem == "perdix":
        return "index"
    if stem == "index":
        return None  # the interface behind which layers above know all engines
    if (root / "src" / "index" / stem).is_dir():
        return f"index/{stem}"
    return stem if stem in LAYERS else None


def flushes_only_in_pm(source):
    """only src/pm/ flushes, fences, syncs or calls libpmem2"""
    if not source.is_cxx or not outside_pm(source):
        return
    for line, match in source.find(_FLUSH):
        if source.path == INTERPOSER:
            continue  # defines msync, as one that can fail
        yield line, f"{match[0].rstrip(' (')} belongs into src/pm/"
    for line, _ in source.find(_ASM):
        if _ASM_FLUSH.search("\n".join(source.lines[line - 1 : line + 4])):
            yield line, "a flush or fence in assembly belongs into src/pm/"
    for line, _, target in source.includes:
        if re.match(r"libpmem2?\.h$", target):
            yield line, f"<{target}> belongs into src/pm/"


def public_includes(source):
    """a public header includes only the standard library and <perdix/...>"""
    if not source.path.startswith("include/"):
        return
    for line, quoted, target in source.includes:
        if quoted or not _PUBLIC.fullmatch(target):
            yield line, f"a public header may not include {target}"


def plugins_use_the_public_api(source):
    """a plug-in of plugins/ includes only the standard library, <perdix/...> and its own folder"""
    if not source.path.startswith("plugins/") or not source.is_cxx:
        return
    for line, quoted, target in source.includes:
        own = quoted and target.startswith("plugins/") and (source.root / target).is_file()
        if not own and (quoted or not _PUBLIC.fullmatch(target)):
            yield line, f"a plug-in may not include {target}: the public API lacks what it needs"


def own_header_first(source):
    """a source includes the header of the same name first, so that this header compiles alone"""
    header = f"{source.path[: -len('.cc')]}.h"
    if not source.path.endswith(".cc") or not (source.root / header).is_file():
        return
    includes = sorted(source.includes)
    if includes and not f"/{header}".endswith(f"/{includes[0][2]}"):
        yield includes[0][0], f"{header} is not the first header that is included"


def instrumentation_only_in_pm(source):
    """only src/pm/ and CMake files know of the instrumented build"""
    if not source.is_cxx or not outside_pm(source):
        return
    for line, match in source.find(_INSTRUMENTED):
        yield line, f"{match[0]} belongs into src/pm/"


def file_length(source):
    """a file has at most 700 lines, but for documents"""
    if not source.is_document and len(source.lines) > MAX_FILE:
        yield len(source.lines), f"{len(source.lines)} lines, more than {MAX_FILE}; split the file"


def function_length(source):
    """a function has at most 60 lines"""
    if not source.is_cxx:
        return
    for name, first, last in source.functions():
        if last - first + 1 > MAX_FUNCTION:
            yield first, f"{name} has {last - first + 1} lines, more than {MAX_FUNCTION}"


def classes_are_small(source):
    """a class has at most 40 private declarations: what has more consists of parts"""
    if not in_library(source) or is_of_a_test(source):
        return
    limits = dict(BIG_CLASSES.get(source.path, {}))
    for name, line, count in source.private_declarations():
        limit = limits.pop(name, MAX_PRIVATE)
        if count > limit:
            yield line, f"{name} has {count} private declarations, more than {limit}"
        elif count <= MAX_PRIVATE < limit:
            yield line, f"{name} is small now: take it out of BIG_CLASSES"
    for name in limits:
        yield 1, f"{name} is not here: take it out of BIG_CLASSES"


def parts_do_not_point_back(source):
    """a part of an engine does not include the header of the engine's class"""
    match = _ENGINE_FILE.fullmatch(source.path)
    if not match or not in_library(source):
        return
    engine, name = match.groups()
    allowed = ["api.cc", f"{engine}.cc", *PARTS_THAT_POINT_BACK.get(engine, "").split()]
    for line, _, target in source.includes:
        if target == f"index/{engine}/{engine}.h" and name not in allowed:
            yield line, f"{target} is made of its parts: give the part what it needs"


def finished(source):
    """no markers of unfinished work"""
    for number, line in enumerate(source.lines, 1):
        match = _UNFINISHED.search(line)
        if match:
            yield number, f"{match[0]}: finish it or open an issue"


def plain_lines(source):
    """no tabs, no spaces at the end, at most 100 columns, a newline at the end of the file"""
    for number, line in enumerate(source.lines, 1):
        if "\t" in line and not source.is_document:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "spaces at the end of the line"
        if len(line) > MAX_LINE and not source.is_document:
            yield number, f"{len(line)} columns, more than {MAX_LINE}"
    if source.text and not source.text.endswith("\n"):
        yield len(source.lines), "no newline at the end of the file"


def header_top(source):
    """a header starts with a comment that says what it is for, and has #pragma once"""
    if not source.is_header:
        return
    if 1 not in source.comment_lines:
        yield 1, "no comment at the top: say purpose, invariants and thread-safety"
    if not re.search(r"^#pragma once$", source.code, re.MULTILINE):
        yield 1, "no #pragma once"


def doc_comments_stand_alone(source):
    """a doc comment does not begin with "The same": an editor shows it without the one before"""
    if not source.is_cxx:
        return
    in_comment = False  # whether the line before is one of a doc comment
    for number, line in enumerate(source.lines, 1):
        match = number in source.comment_lines and _THE_SAME.search(line)
        if match and not (in_comment and match["own"] is not None):
            yield number, "The same as what? Name the call, or say it again"
        in_comment = line.lstrip().startswith("///")


def library_manners(source):
    """a library neither ends the process nor prints"""
    if not in_library(source):
        return
    for line, match in source.find(_PROCESS):
        yield line, f"{match[0].rstrip(' (')}: a library throws perdix::Error instead"


def persists_have_reasons(source):
    """each flush, fence, persist and publish has its reason beside it or up to three lines above"""
    if not in_library(source) or not outside_pm(source):
        return
    for match in _PERSIST.finditer(source.code):
        line = source.line_of(match.start(1))
        if not source.comment_lines.intersection(range(line - 3, line + 1)):
            yield line, f"{match[1]}() without its reason"


def layouts_assert_sizes(source):
    """each struct of a layout.h has a static_assert on its size"""
    if not source.path.startswith("src/") or not source.path.endswith("/layout.h"):
        return
    asserts = " ".join(m[0] for _, m in source.find(re.compile(r"\bstatic_assert\s*\([^;]*;")))
    for line, match in source.find(_STRUCT):
        if not re.search(rf"\bsizeof\s*\(\s*(?:\w+::)*{match[1]}\b", asserts):
            yield line, f"no static_assert on sizeof({match[1]})"


def document_lines(source):
    """a line of a document has at most 100 columns, but in tables and where a link fills it"""
    if not source.is_document:
        return
    for number, line in source.text_lines():
        text = line.strip()
        if len(line) > MAX_LINE and not text.startswith("|") and " " in text.lstrip("-* "):
            yield number, f"{len(line)} columns, more than {MAX_LINE}"


def papers_by_name(source):
    """papers are cited by the names that docs/papers.md gives them, not by files"""
    for number, line in enumerate(source.lines, 1):
        match = _CITED_FILE.search(line)
        if match:
            yield number, f"{match[0]}: cite it as docs/papers.md says"


def named_paths(source):
    """each path and document that a document names exists, and each document that a source names"""
    if not source.is_document:
        for number, line in enumerate(source.lines, 1):
            for path in _DOCUMENT.findall(line):
                if source.is_cxx and not (source.root / path).is_file():
                    yield number, f"there is no {path}"
        return
    for number, line in source.text_lines():
        for word in (word for span in _SPAN.findall(line) for word in span.split()):
            if not is_there(source.root, word.rstrip(".,:;")):
                yield number, f"there is no {word}"
        for target in _LINK.findall(line):
            yield from ((number, problem) for problem in problems_of_link(source, target))


def is_there(root, word):
    """Whether a word of a document is no path of the repository, or one that exists."""
    if _PATH.fullmatch(word):
        return (root / word).exists() or ("*" in word and any(root.glob(word.rstrip("/"))))
    if _FILE_NAME.fullmatch(word) and not word.startswith(("/", "build/", "..")):
        return word in endings_of_paths(root)
    return True


@functools.lru_cache
def endings_of_paths(root):
    """What may name a file: `c.h`, `b/c.h` and `a/b/c.h` for each a/b/c.h below root."""
    endings = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        for name in names:
            parts = [*Path(folder).relative_to(root).parts, name]
            endings.update("/".join(parts[first:]) for first in range(len(parts)))
    return endings


def problems_of_link(source, target):
    """What is wrong with a link of a document to another one, or to a heading."""
    if re.match(r"[a-z]+:", target):
        return
    path, _, heading = target.partition("#")
    file = (source.root / source.path).parent / path if path else source.root / source.path
    if not file.exists():
        yield f"there is no {target}"
    elif heading and file.suffix == ".md" and heading not in headings_of(file):
        yield f"there is no heading for {target}"


@functools.lru_cache
def headings_of(file):
    """The names by which links lead to the headings of a document, as GitHub makes them."""
    titles = re.findall(r"^#+ +(.*?) *$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def tests_wait_for_states(source):
    """a test waits by util/test_eventually.h, but in the places that WAITS lists"""
    if not is_of_a_test(source) or allowed_in(source, WAITS):
        return
    if source.is_cxx:
        found = source.find(_WAIT)
    elif source.path.endswith(".py"):
        found = ((n, m) for n, text in enumerate(source.lines, 1)
                 for m in _PYTHON_WAIT.finditer(text))
    else:
        return
    for line, match in found:
        call = next(name for name in match.groups() if name)
        yield line, f"{call}() in a test: wait for a state, by util/test_eventually.h"


def tests_have_their_own_folders(source):
    """a test names no folder that programs share, but in the places that SHARED_FOLDERS lists"""
    if not is_of_a_test(source) or source.is_document or allowed_in(source, SHARED_FOLDERS):
        return
    for line, text in enumerate(source.lines, 1):
        match = _SHARED_FOLDER.search(text)
        if match:
            yield line, f"{match[0]}: take a folder of your own, by util/test_directory.h"


RULES = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        include_direction,
        flushes_only_in_pm,
        public_includes,
        plugins_use_the_public_api,
        own_header_first,
        instrumentation_only_in_pm,
        file_length,
        function_length,
        classes_are_small,
        parts_do_not_point_back,
        finished,
        plain_lines,
        header_top,
        doc_comments_stand_alone,
        library_manners,
        persists_have_reasons,
        layouts_assert_sizes,
        document_lines,
        papers_by_name,
        named_paths,
        tests_wait_for_states,
        tests_have_their_own_folders,
    )
}


# --- Rules over all files: each yields (path, line, message) --------------------------------------


def class_names_are_rare(sources):
    """a class name of the library is in at most two namespaces, but for those that engines share"""
    places = {}
    for source in sources:
        if in_library(source):
            for namespace, name, line in source.classes():
                places.setdefault(name, []).append((namespace, source.path, line))
    for name, found in places.items():
        namespaces = {namespace for namespace, _, _ in found}
        if name in COMMON_CLASSES or len(namespaces) <= MAX_NAMESPACES:
            continue
        for _, path, line in found:
            yield path, line, f"{name} is a class in {', '.join(sorted(namespaces))}: rename it"


TREE_RULES = {rule.__name__.replace("_", "-"): rule for rule in (class_names_are_rare,)}


# --- The tree -------------------------------------------------------------------------------------


def files(root):
    """The files under the rules, as paths relative to root, in a fixed order."""
    found = [root / "CMakeLists.txt"] if (root / "CMakeLists.txt").is_file() else []
    found += root.glob("*.md")
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            known = path.suffix in (".h", ".cc", ".cmake", ".py", ".sh", ".md")
            known = known or path.name == "CMakeLists.txt" or folder == "scripts"
            if path.is_file() and known:
                found.append(path)
    return sorted(str(path.relative_to(root).as_posix()) for path in found)


def check(root):
    """All findings below root: a sorted list of (path, line, rule, message), and the files seen."""
    findings = []
    paths = files(root)
    sources = [Source(root, path) for path in paths]
    for source in sources:
        for name, rule in RULES.items():
            findings += [(source.path, line, name, message) for line, message in rule(source)]
    for name, rule in TREE_RULES.items():
        findings += [(path, line, name, message) for path, line, message in rule(sources)]
    return sorted(findings), paths


def main():
    parser = argparse.ArgumentParser(description="Checks the layering and style of the sources.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--rules", action="store_true", help="list the rules")
    arguments = parser.parse_args()
    if arguments.rules:
        for name, rule in {**RULES, **TREE_RULES}.items():
            print(f"{name:28} {rule.__doc__}")
        return 0
    findings, paths = check(arguments.root.resolve())
    for path, line, rule, message in findings:
        print(f"{path}:{line}: [{rule}] {message}")
    print(f"tidy: {len(paths)} files, {len(findings)} findings")
    return 1 if findings or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
