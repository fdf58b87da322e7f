"""The table of which test notices each planted bug first (first_notice.tsv), and what it says: a
row for each bug, and in the end how many the quick suite notices."""

import collections
import hashlib
import re
from pathlib import Path

from bug import ROOT
from ladder import UNITS
from statement import Source, code_of

TABLE = Path(__file__).with_name("first_notice.tsv")
PAGE = Path(__file__).resolve().parents[2] / "docs/planted-bugs.md"
# In place of a suite and a test: no test notices the bug; none of the quick suite does, and the
# deep one was not tried.
NONE, OPEN = "none", "open"

# `suite` is quick, deep, none or open; `after` counts in the unit of the kind of test; `sources`
# changes with the bug and its function.
Row = collections.namedtuple("Row", "key file suite test after unit sources")


def key_of(bug):
    """The bug's name in short, which stays when others come and go."""
    return re.sub(r"[^a-z0-9]+", "-", bug.name.lower()).strip("-")


def sources_of(bug):
    """What tells whether a row is about the bug and its function as they are, wherever that is."""
    parts = (function_of(ROOT, bug.path, bug.before), bug.before, bug.after, repr(bug.subjects))
    squeezed = ("".join(part.split()) for part in parts)
    return hashlib.sha256("\0".join(squeezed).encode()).hexdigest()[:8]


def function_of(root, path, before):
    """Parameters and body of the function in which a piece of a file ends; all code of the file, if
    there is none."""
    source = Source(root, path)
    end = source.text.index(before) + len(before.rstrip())
    line = source.line_of(max(end - 1, 0))
    for _, first, last in source.functions():
        if first <= line <= last:
            return code_of("\n".join(source.lines[first - 1 : last])).partition("(")[2]
    return source.code


def row_of(bug, step=None, after=0, missed_by=NONE):
    """The row of a bug that a step notices, or none does."""
    noticed = (step.suite, step.test, str(after), UNITS[step.kind]) if step else (missed_by,) * 4
    return Row(key_of(bug), bug.path, *noticed, sources_of(bug))


def read_table():
    if not TABLE.is_file():
        return {}
    lines = TABLE.read_text().splitlines()[1:]
    return {row.key: row for row in (Row(*line.split("\t")) for line in lines)}


def write_table(rows):
    lines = ["\t".join(row) for row in sorted(rows.values())]
    TABLE.write_text("\n".join(["\t".join(Row._fields), *lines]) + "\n")


def summary(rows):
    count = collections.Counter(row.suite for row in rows)
    total = len(rows)
    percent = 100 * count["quick"] / total if total else 0
    return (
        f"noticed by the quick suite {count['quick']} of {total} ({percent:.1f} %), "
        f"by the deep suite only {count['deep']}, by none {count[NONE]}, open {count[OPEN]}"
    )


def part_of(path):
    """The engine or the layer that a file belongs to."""
    return re.sub(r"^src/(index/)?", "", path).split("/")[0]


def _by_part(rows):
    groups = collections.defaultdict(collections.Counter)
    for row in rows:
        groups[part_of(row.file)][row.suite] += 1
    lines = ["| part | bugs | quick | deep only | none | open |", "|---|---:|---:|---:|---:|---:|"]
    for part, count in sorted(groups.items()):
        numbers = (count.total(), *(count[suite] for suite in ("quick", "deep", NONE, OPEN)))
        lines.append(f"| {part} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def _by_test(rows):
    """How many bugs each test of the quick suite notices first, and after how much."""
    groups = collections.defaultdict(list)
    for row in rows:
        if row.suite == "quick":
            groups[row.test, row.unit].append(int(row.after))
    lines = ["| test | bugs | half of them after | all after |", "|---|---:|---:|---:|"]
    for (test, unit), after in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        half = sorted(after)[(len(after) - 1) // 2]
        lines.append(f"| {test} | {len(after)} | {half} {unit} | {max(after)} {unit} |")
    return "\n".join(lines)


def _listed(rows, suite):
    """The bugs of a suite, one in a line."""
    chosen = [row for row in rows if row.suite == suite]
    if not chosen:
        return "None."
    lines = [f"| {row.key} | {row.test} | {row.after} {row.unit} |" for row in chosen]
    return "\n".join(["| bug | noticed by | after |", "|---|---|---:|", *lines])


def _state(rows, bugs):
    """The shares, which say something only of all bugs."""
    if len(rows) < bugs:
        return (
            f"The table has {len(rows)} of {bugs} bugs. No campaign has tried the others, so it\n"
            "does not show yet which share of all bugs the quick suite notices."
        )
    return f"The table has all {bugs} bugs:\n{summary(rows)}."


def page(rows, bugs, older=0):
    """The document about the table, of which so many rows are older than the code of their bug."""
    old = f"\n{older} rows are about a bug or a function that has changed since." if older else ""
    return f"""# Planted bugs

`tests/planted/planted_bugs.py --page` makes this page from `tests/planted/first_notice.tsv`, which
`tests/planted/planted_bugs.py --campaign` fills. A campaign plants one bug at a time and runs the
tests of the quick suite (`make test`) that concern its engine or layer, exactly as `make test` runs
them, until one fails; if none does, what the bug itself names, in the sizes of the deep suite
(`tests/planted/ladder.py`). Tests of other engines and layers are not tried, so the quick suite
may notice more.

{_state(rows, bugs)}{old}

## By part

{_by_part(rows)}

## By the first test that notices

{_by_test(rows)}

## Noticed by the deep suite only

{_listed(rows, "deep")}

## Noticed by no test

{_listed(rows, NONE)}

## Not noticed by the quick suite, and not tried with the deep one

{_listed(rows, OPEN)}
"""
