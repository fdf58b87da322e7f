#!/usr/bin/env python3
"""The reader of runs refuses what it does not understand, and each file has runs of every engine or
says why not."""

import re
import tempfile
import unittest
from pathlib import Path

import runs

ROOT = runs.FOLDER.parents[1]
GOOD = """
[tables]
forms = [{form = "a", engine = "{form}x"}, {form = "b", engine = "y"}]
[[run]]
name = "n.{form}.{kind}"
program = "p"
options = "--engine {engine}"
label = "kill"
over.form = "forms"
over.kind = [1, 2]
"""


def read(text):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        return runs.read(file.name)[0]


def engines(which):
    """Those of the registry: all, or those that hold pairs."""
    listed = (ROOT / "cmake/engines.cmake").read_text()
    names = re.search(r"set\(PERDIX_ALL_ENGINES([^)]*)\)", listed)[1].split()
    folders = ROOT / "src/index"
    return {n for n in names if which == "all" or (folders / n / "test_traits.h").exists()}


def engines_of(run):
    if "engines" in run:
        return engines(run["engines"])
    named = re.findall(r"--engine (\w+)", run["options"])
    return set(named) & engines("all")


class Reader(unittest.TestCase):
    def test_makes_all_combinations(self):
        found = [(run["name"], run["options"]) for run in read(GOOD)]
        ax, y = "--engine ax", "--engine y"
        self.assertEqual(found, [("n.a.1", ax), ("n.a.2", ax), ("n.b.1", y), ("n.b.2", y)])

    def test_refuses_what_it_does_not_understand(self):
        for good, wrong in (
            ('label = "kill"', 'label = "kill"\nretries = 3'),
            ('label = "kill"', ""),
            ('label = "kill"', 'label = "kill"\nseconds = "3"'),
            ("{engine}", "{motor}"),
            ('over.form = "forms"', 'over.form = "shapes"'),
            ("over.kind = [1, 2]", "over.kind = [1, 1]"),
            ("over.kind = [1, 2]", "over.kind = []"),
            ("[tables]", "[table]"),
        ):
            with self.subTest(wrong), self.assertRaises(runs.Refused):
                read(GOOD.replace(good, wrong))


class Files(unittest.TestCase):
    def test_have_every_engine_or_a_reason(self):
        for path in runs.FOLDER.glob("*.toml"):
            listed, reasons = runs.read(path)
            covered = set().union(*map(engines_of, listed))
            self.assertEqual(engines("all") - covered, set(reasons), path.name)


if __name__ == "__main__":
    unittest.main()
