#!/usr/bin/env python3
"""Reads the files that say which runs of the test programs exist (*.toml beside this program), and
prints them as calls of perdix_command_test() for CMake.

    tests/runs/runs.py crash.toml kill.toml

A file has `[[run]]`s and `[tables]`. A run has a name, a program, its options and a label, and may
have the other fields of FIELDS. It stands for all combinations of the values that `over` lists for
each variable: lists of values, or names of tables. A value may be a table of several variables.
`{variable}` in the name or the options becomes its value; the value may have variables, too. The
rows of a table with `defaults` have these where they do not say otherwise.
"""

import itertools
import sys
import tomllib
from pathlib import Path

# What a run may say, and of which type.
FIELDS = {
    "name": str,
    "program": str,
    "options": str,
    "label": str,
    "over": dict,
    "seconds": int,  # about how long it takes
    "timeout": int,
    "processors": int,  # how many it needs
    "engines": str,  # "all" or "pairs", if the options name none
}
NEEDED = ("name", "program", "label")
FOLDER = Path(__file__).parent


class Refused(Exception):
    """A file that says what cannot be."""


def _require(condition, text):
    if not condition:
        raise Refused(text)


def _values(name, given, tables):
    """The values of a variable, each as a table of variables."""
    if isinstance(given, str):
        _require(given in tables, f"there is no table {given}")
        given = tables[given]
    if isinstance(given, dict):
        given = [given["defaults"] | row for row in given["rows"]]
    _require(isinstance(given, list) and given, f"{name} has no list of values")
    return [value if isinstance(value, dict) else {name: str(value)} for value in given]


def _filled(text, variables):
    """The text with values in place of variables, and of those in values."""
    while "{" in text:
        try:
            text = text.format_map(variables)
        except KeyError as missing:
            raise Refused(f"{text}: nothing says what {missing} is") from None
    return text


def _expand(run, tables):
    for field, value in run.items():
        _require(field in FIELDS, f"{run.get('name')}: unknown field {field}")
        _require(isinstance(value, FIELDS[field]), f"{run.get('name')}: wrong type of {field}")
    for field in NEEDED:
        _require(field in run, f"{run.get('name')}: no {field}")
    over = [_values(name, given, tables) for name, given in run.get("over", {}).items()]
    for combination in itertools.product(*over):
        variables = {key: str(v) for values in combination for key, v in values.items()}
        filled = dict(run, name=_filled(run["name"], variables))
        filled["program"] = _filled(run["program"], variables)
        filled["options"] = _filled(run.get("options", ""), variables)
        yield filled


def read(path):
    """All runs of a file, one for each combination; and why it has none of some engines."""
    content = tomllib.loads(Path(path).read_text())
    _require(content.keys() <= {"run", "tables", "without"}, "unknown parts")
    runs = [filled for run in content["run"] for filled in _expand(run, content.get("tables", {}))]
    names = [run["name"] for run in runs]
    twice = sorted({name for name in names if names.count(name) > 1})
    _require(not twice, f"{twice} are there twice")
    return runs, content.get("without", {})


def _call(run):
    """The run in the language of CMake."""
    words = [f"perdix_command_test({run['name']} LABEL {run['label']} BUILDS {run['program']}"]
    words += [f"{field.upper()} {run[field]}" for field in ("seconds", "timeout") if field in run]
    words += ["COMMAND", run["program"], *(f'"{word}"' for word in run["options"].split())]
    call = " ".join(words) + ")"
    if "processors" in run:
        call += f"\nset_tests_properties({run['name']} PROPERTIES PROCESSORS {run['processors']})"
    return call


def main():
    try:
        for name in sys.argv[1:]:
            print(*map(_call, read(FOLDER / name)[0]), sep="\n")
    except (Refused, tomllib.TOMLDecodeError) as refused:
        sys.exit(f"{name}: {refused}")


if __name__ == "__main__":
    main()
