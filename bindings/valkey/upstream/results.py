"""Results of the servers' own suites: read, joined, explained, and written as a page.

A file of results has lines for each test, words between tabs: status, file, test, message. The last
line of a complete one is `done`. A test that ran several times counts as its worst run.
"""

from collections import Counter
from dataclasses import dataclass, field

# The worst is the last. A test has the status `testing` if it never ended.
ORDER = ("testing", "skip", "ignore", "ok", "err", "exception")
FAILED = ("testing", "err", "exception")
KINDS = ("limit", "test", "server", "fault")  # of reasons; the page says what they mean
WHATS = ("failure", "disturbed", "image", "left out", "not reached")
SHOWN = 4  # tests that a row of the page names
OUTSIDE = "(outside of a test)"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


def escaped(text):
    for char in "\\\t\n\r":
        text = text.replace(char, {v: f"\\{k}" for k, v in ESCAPES.items()}[char])
    return text


def unescaped(text):
    parts = text.split("\\\\")
    for name in "tnr":
        parts = [part.replace(f"\\{name}", ESCAPES[name]) for part in parts]
    return "\\".join(parts)


def write_line(path, *words):
    with open(path, "a", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(escaped(word) for word in words) + "\n")


def read_lines(path):
    """The lines of a file of results, and whether it is complete. An absent file has none."""
    if not path.exists():
        return [], False
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = [[unescaped(word) for word in line.split("\t")] for line in text.split("\n") if line]
    complete = bool(lines) and lines[-1] == ["done"]
    return [line for line in lines if len(line) == 4], complete


@dataclass
class Outcome:
    """What became of a test: the worst status of its runs, and the message of that."""

    status: str
    message: str = ""

    @property
    def failed(self):
        return self.status in FAILED


def outcomes(lines):
    """By name of a test, which is unique in its file."""
    found = {}
    for status, _, test, message in lines:
        name = test or OUTSIDE
        if name == OUTSIDE and status not in ("err", "exception"):
            continue  # a whole block that is left out
        known = found.get(name)
        if known is None or ORDER.index(status) > ORDER.index(known.status):
            found[name] = Outcome(status, message)
    return found


@dataclass
class Unit:
    """The results of one file of a suite under one server: by kind of run, then by test."""

    server: str
    file: str
    stock: dict = field(default_factory=dict)
    module: dict = field(default_factory=dict)  # with the module, images compared
    again: dict = field(default_factory=dict)  # with the module alone; only if something failed
    images: list = field(default_factory=list)  # (test, status, detail)

    def suspects(self):
        """Tests that failed with the module and not without."""
        return [name for name in sorted(self.module)
                if failed(self.module, name) and not failed(self.stock, name)]

    def unreached(self):
        """Tests that passed without the module and did not run with it: the file was left."""
        return sorted(name for name in self.stock
                      if passed(self.stock, name) and name not in self.module)

    def left_out(self):
        """Tests that passed without the module, and that reasons.tsv leaves out with it."""
        return sorted(name for name in self.stock if passed(self.stock, name)
                      and name in self.module and self.module[name].status == "skip")

    def with_the_module_only(self):
        """Suspects that fail again without images, or were not reached then."""
        return [n for n in self.suspects() if failed(self.again, n) or n not in self.again]

    def disturbed(self):
        """Suspects that pass without images: the comparing disturbs them, or they fail at times."""
        return [n for n in self.suspects() if n not in self.with_the_module_only()]

    def differing(self):
        """(test, detail) of the images that differ, each test once."""
        return sorted({test: detail for test, status, detail in self.images
                       if status == "differs"}.items())


def failed(run, name):
    return name in run and run[name].failed


def passed(run, name):
    return name in run and run[name].status == "ok"


@dataclass
class Finding:
    """What is otherwise with the module, and the reason if it is known."""

    server: str
    file: str
    test: str
    what: str  # one of WHATS
    message: str
    kind: str = "new"
    reason: str = ""


@dataclass
class Reason:
    """Why tests fail. `servers`, `file` and `test` may end with `*`; several servers: commas."""

    servers: str
    file: str
    test: str
    what: str
    kind: str
    text: str

    def fits(self, finding):
        return (
            any(fits(pattern, finding.server) for pattern in self.servers.split(","))
            and fits(self.file, finding.file)
            and fits(self.test, finding.test)
            and self.what in ("*", finding.what)
        )


def fits(pattern, word):
    return word.startswith(pattern[:-1]) if pattern.endswith("*") else word == pattern


def read_reasons(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [Reason(*row) for row in rows]


def findings_of(unit):
    only = unit.with_the_module_only()
    for test in unit.suspects():
        what = "failure" if test in only else "disturbed"
        yield Finding(unit.server, unit.file, test, what, unit.module[test].message)
    for test in unit.left_out():
        yield Finding(unit.server, unit.file, test, "left out", "")
    unreached = unit.unreached()
    if unreached:
        what = f"{len(unreached)} tests"
        yield Finding(unit.server, unit.file, what, "not reached", ", ".join(unreached)[:200])
    for test, detail in unit.differing():
        yield Finding(unit.server, unit.file, test or OUTSIDE, "image", detail)


def left_out(reasons, server, file):
    """The names of tests that are not run with the module."""
    return [r.test for r in reasons if r.what == "left out"
            and r.fits(Finding(server, file, r.test, "left out", ""))]


def findings(units, reasons):
    """All findings of units, each with the first reason that fits."""
    found = []
    for unit in units:
        found += findings_of(unit)
    for finding in found:
        for reason in reasons:
            if reason.fits(finding):
                finding.kind, finding.reason = reason.kind, reason.text
                break
    return found


def cell(text, limit=160):
    text = " ".join(text.split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def counts_of(unit):
    """The cells of a unit's row: what ran, what failed where, and what became of the images."""
    run = [name for name in unit.stock if unit.stock[name].status in ("ok", *FAILED)]
    images = Counter(status for _, status, _ in unit.images)
    return (
        len(run),
        sum(failed(unit.stock, name) for name in run),
        len(unit.with_the_module_only()) + len(unit.left_out()) + len(unit.unreached()),
        images["same"] + images["differs"],
        images["differs"],
        images["none"],
    )


def rows_of_units(units):
    servers = sorted({unit.server for unit in units})
    for server in servers:
        mine = [unit for unit in units if unit.server == server]
        rows = [(unit.file, *counts_of(unit)) for unit in sorted(mine, key=lambda u: u.file)]
        total = [sum(row[i] for row in rows) for i in range(1, 7)]
        for row in [*rows, ("all", *total)]:
            yield f"| {server} | " + " | ".join(str(word) for word in row) + " |"


def rows_of_findings(found):
    """Findings with one reason in one row. One without a reason has its own."""
    rows = {}
    for finding in found:
        why = finding.reason or f"not known: {finding.message}"
        rows.setdefault((finding.kind, finding.what, finding.file, why), []).append(finding)
    for (kind, what, file, why), same in sorted(rows.items()):
        tests = sorted({finding.test for finding in same})
        more = f" (and {len(tests) - SHOWN} more)" if len(tests) > SHOWN else ""
        servers = ", ".join(sorted({finding.server for finding in same}))
        named = "; ".join(cell(test) for test in tests[:SHOWN]) + more
        yield f"| {kind} | {what} | `{file}` | {named} | {servers} | {cell(why, 400)} |"


HEAD = """# The servers' own suites under the module

Written by `make valkey-upstream ARGS=--page`; do not edit. The servers' own suites, from Debian's
source packages, run with the stock server and with the module in `mode keyspace`. After each test
a copy of each server's pool is opened by a second server, and all its data are compared. *Only with
the module* is what fails with the module, fails again without the comparing, and passes with the
stock server."""

AFTER_UNITS = """
An image is not compared if the server is a node of a cluster, or if no second connection can read
it: it is stopped, busy or loading, asks for a password, or has ended.

## What fails with the module only

*limit*: the README documents it. *test*: the test counts or shows something that a module of any
kind changes, or its time. *server*: a fault of the server, which a module brings to light. *fault*:
a fault of this module. *new*: not yet judged in `reasons.tsv`. A *failure* is a test that fails, a
*disturbed* one fails with the comparing only, an *image* differs from what the server shows. What
is *left out* is not run with the module; what is *not reached* lies behind a test that ended the
file.
"""


def page(units, found, versions):
    """The page of the results, in Markdown."""
    suites = [f"- {server}: source package of {version}" for server, version in sorted(versions)]
    return "\n".join([
        HEAD,
        "",
        *suites,
        "",
        "| server | file | tests | fail with the stock server | only with the module "
        "| images compared | images that differ | images not compared |",
        "|---|---|---|---|---|---|---|---|",
        *rows_of_units(units),
        AFTER_UNITS,
        "| kind | what | file | test | servers | reason |",
        "|---|---|---|---|---|---|",
        *rows_of_findings(found),
        "",
    ])
