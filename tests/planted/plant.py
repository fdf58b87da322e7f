"""The copy of the sources in which all bugs are planted: where a bug changes lines it has both
versions, and the environment of a run says which bug that has, if any."""

import collections
import itertools
import re
import subprocess

from bug import ROOT
from bugs import BUGS
from statement import Misfit, begins_statement, code_of, is_balanced, statement_around

VARIABLE = "PERDIX_PLANTED"
SWITCH = f"""#pragma once
#include <cstdlib>

/// Whether this process has the bug of that number.
inline bool planted(int number) {{
  static const char* const wanted = std::getenv("{VARIABLE}");
  static const int bug = wanted != nullptr ? std::atoi(wanted) : -1;
  return bug == number;
}}
"""

# What a bug has in place of lines is numbered from a multiple of this on, which names the bug.
_LINES_OF_BUG = 100000
# The lines [begin, end) of a file, and what bug `number` has in their place.
Change = collections.namedtuple("Change", "begin end number lines")


def source_of(bug):
    return (ROOT / bug.path).read_text()


def misfit_of(bug):
    """Why a bug does not fit the sources; empty if it does."""
    if bug.misfit:
        return bug.misfit
    sound = source_of(bug)
    count = sound.count(bug.before)
    if count != 1:
        return f"its text is there {count} times"
    if bug.before.startswith(" ") and sound[sound.index(bug.before) - 1] != "\n":
        return "it begins inside an indentation"
    return "" if "{planted}" in bug.after else _misfit_of_lines(sound, bug)


def _misfit_of_lines(sound, bug):
    """Why the two versions of the lines that a bug changes can't stand in blocks."""
    lines = sound.splitlines(keepends=True)
    change = change_of(0, bug, lines)
    old, new = "".join(lines[change.begin : change.end]), "".join(change.lines)
    if declares(old):
        return "it changes a declaration, which others use"
    begin = len("".join(lines[: change.begin]))
    if code_of(old).strip() and not begins_statement(code_of(sound), _first_code(sound, begin)):
        return "it begins within a statement"
    for some in (old, new):
        code = code_of(some).strip()
        if not is_balanced(some) or (code and code[-1] not in ";}"):
            return "it ends within a statement"
    return ""


def declares(text):
    """Whether lines are a declaration: others could not use it, since the two versions stand in
    blocks."""
    one = text.count(";") == 1
    return one and re.match(r"\s*(const|auto|static)\b[^;()]*?\b\w+ = ", text) is not None


def change_of(number, bug, lines):
    """The lines that a bug changes, and the rest of the statements that they belong to."""
    sound = "".join(lines)
    wrong = sound.replace(bug.before, bug.after).splitlines(keepends=True)
    begin = 0
    while lines[begin] == wrong[begin]:
        begin += 1
    after = 0
    while after < min(len(lines), len(wrong)) - begin and lines[-1 - after] == wrong[-1 - after]:
        after += 1
    first, end = _whole_statements(sound, lines, begin, len(lines) - after)
    return Change(first, end, number, wrong[first : len(wrong) - len(lines) + end])


def _whole_statements(sound, lines, begin, end):
    """The lines [begin, end), and those of the statements that begin before or end behind them."""
    code = code_of(sound)
    starts = list(itertools.accumulate(map(len, lines), initial=0))
    if not code[starts[begin] : starts[end]].strip():
        return begin, end
    first = _first_code(sound, starts[begin])
    last = len(code[: starts[end]].rstrip()) - 1
    try:
        if not begins_statement(code, first):
            begin = min(begin, code.count("\n", 0, statement_around(code, first)[0]))
        if code[last] not in ";}":
            end = max(end, code.count("\n", 0, statement_around(code, last)[1]) + 1)
    except Misfit:
        pass  # it is no statement; misfit_of() tells
    return begin, end


def _first_code(text, at):
    """The first position from one on that is neither space nor comment."""
    return at + len(code_of(text)[at:]) - len(code_of(text)[at:].lstrip())


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
        line = _LINES_OF_BUG * (change.number + 1) + begin + 1
        text += f"if (::planted({change.number})) {{\n#line {line}\n{''.join(wrong)}}} else "
    sound = "".join(lines[begin:end])
    return begin, end, text + f"{{\n#line {begin + 1}\n{sound}}}\n#line {end + 1}\n"


def number_at(line):
    """The bug whose version of the lines has the compiler's line of that number; None if none."""
    return line // _LINES_OF_BUG - 1 if line >= _LINES_OF_BUG else None


def plant(text, bugs):
    """The source with all of these (number, bug) in it. Its lines keep their numbers, so that call
    sites have the same names without a bug: persist_mutation.py takes this explorer, too."""
    sound = text.splitlines(keepends=True)
    changes = [change_of(n, bug, sound) for n, bug in bugs if "{planted}" not in bug.after]
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


def plant_sources(tree):
    """Brings the files up to date that have bugs in the copy."""
    for path, bugs in bugs_by_file().items():
        write(tree / path, plant((ROOT / path).read_text(), bugs).encode())
    write(tree / "src/planted.h", SWITCH.encode())


def copy_sources(tree):
    """Brings the copy up to date, bugs included."""
    plant_sources(tree)
    planted = bugs_by_file()
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        source = ROOT / name
        if source.is_file() and name not in planted:
            write(tree / name, source.read_bytes())
            (tree / name).chmod(source.stat().st_mode)
