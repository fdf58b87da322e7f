"""The table of which test notices each planted bug first (first_notice.tsv), and what it says: a
row for each bug, and in the end how many the quick suite notices."""

import collections
import hashlib
import re
from pathlib import Path

from ladder import QUICK, UNITS
from plant import source_of

TABLE = Path(__file__).with_name("first_notice.tsv")
PAGE = Path(__file__).resolve().parents[2] / "docs/planted-bugs.md"
NONE = "-"  # noticed by no test

# `after` counts in the units of the kind that noticed; `sources` changes with the bug and its file.
Row = collections.namedtuple("Row", "key file noticed_by after unit subject sources")


def key_of(bug):
    """The bug's name in short, which stays when others come and go."""
    return re.sub(r"[^a-z0-9]+", "-", bug.name.lower()).strip("-")


def sources_of(bug):
    """What tells whether a row is about the bug and its file as they are."""
    parts = (source_of(bug), bug.before, bug.after, repr(bug.subjects))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def row_of(bug, kind, after, subject):
    unit = UNITS.get(kind, NONE)
    return Row(key_of(bug), bug.path, kind, str(after), unit, subject, sources_of(bug))


def read_table():
    if not TABLE.is_file():
        return {}
    lines = TABLE.read_text().splitlines()[1:]
    return {row.key: row for row in (Row(*line.split("\t")) for line in lines)}


def write_table(rows):
    lines = ["\t".join(row) for row in sorted(rows.values())]
    TABLE.write_text("\n".join(["\t".join(Row._fields), *lines]) + "\n")


def verdict_of(row):
    """Which suite notices the bug of a row: quick, deep or none."""
    if row.noticed_by == NONE:
        return "none"
    return "quick" if int(row.after) <= QUICK.get(row.noticed_by, 0) else "deep"


def summary(rows):
    count = collections.Counter(verdict_of(row) for row in rows)
    total = len(rows)
    percent = 100 * count["quick"] / total if total else 0
    return (
        f"noticed by quick {count['quick']} of {total} ({percent:.1f} %), "
        f"by deep only {count['deep']}, by none {count['none']}"
    )


def part_of(path):
    """The engine or the layer that a file belongs to."""
    return re.sub(r"^src/(index/)?", "", path).split("/")[0]


def _counts(title, rows, group_of):
    groups = collections.defaultdict(collections.Counter)
    for row in rows:
        groups[group_of(row)][verdict_of(row)] += 1
    lines = [f"| {title} | bugs | quick | deep only | none |", "|---|---:|---:|---:|---:|"]
    for group, count in sorted(groups.items()):
        numbers = (count.total(), count["quick"], count["deep"], count["none"])
        lines.append(f"| {group} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def _listed(rows, verdict):
    """The bugs of a verdict, one in a line."""
    chosen = [row for row in rows if verdict_of(row) == verdict]
    if not chosen:
        return "None."
    lines = [f"| {row.key} | {row.noticed_by} | {row.after} {row.unit} |" for row in chosen]
    return "\n".join(["| bug | noticed by | after |", "|---|---|---:|", *lines])


def _state(rows, bugs):
    """The shares, which say something only of all bugs."""
    if len(rows) < bugs:
        return (
            f"The table has {len(rows)} of {bugs} bugs. No campaign has tried the others, so it\n"
            "does not show yet which share of all bugs the quick suite notices."
        )
    return f"The table has all {bugs} bugs: {summary(rows)}."


def page(rows, bugs):
    """The document about the table."""
    quick = ", ".join(f"{kind} {most} {UNITS[kind]}" for kind, most in QUICK.items())
    noticed_first = _counts("noticed first by", rows, lambda row: row.noticed_by)
    return f"""# Planted bugs

`tests/planted/planted_bugs.py --page` makes this page from `tests/planted/first_notice.tsv`, which
`tests/planted/planted_bugs.py --campaign` fills. A campaign plants one bug at a time and climbs a
ladder of tests (`tests/planted/ladder.py`) until one notices it. What the quick suite runs of each:
{quick}.

{_state(rows, bugs)}

## By part

{_counts("part", rows, lambda row: part_of(row.file))}

## By the first test that notices

{noticed_first}

## Noticed by the deep suite only

{_listed(rows, "deep")}

## Noticed by no test

{_listed(rows, "none")}
"""
