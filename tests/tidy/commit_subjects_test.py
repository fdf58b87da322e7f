#!/usr/bin/env python3
"""scripts/commit_subjects accepts and refuses the right subjects, knows which commits to look at,
and finds nothing wrong with those of this tree."""

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/commit_subjects"

GOOD = [
    "sptree: split a leaf without its lock",
    "build: embed the version",
    "index/common, wal: move the log of write buffers",
    "bench: process each row once",
    "x: " + "y" * 69,
    'Revert "tips: the reserve may grow with the pool"',
    "fixup! no matter what",
]
BAD = [
    "split a leaf",
    "sptree split a leaf: again",
    "Leaves are split without a lock",
    "sptree: a leaf is split without its lock",
    "sptree: what a split holds",
    "sptree: leaves split",
    "sptree: fixed a leak",
    "sptree: fixing a leak",
    "sptree: fixes a leak",
    "sptree: fix a leak.",
    "sptree:",
    "x: " + "y" * 70,
]


def load_script():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("commit_subjects", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Subjects(unittest.TestCase):
    script = load_script()

    def test_good(self):
        for subject in GOOD:
            self.assertEqual(self.script.problem_of(subject), "", subject)

    def test_bad(self):
        for subject in BAD:
            self.assertNotEqual(self.script.problem_of(subject), "", subject)

    def test_hook(self):
        with tempfile.NamedTemporaryFile("w+", prefix="perdix-subject-") as message:
            cases = (("# comment\nx: add y\n\nBecause.\n", 0), ("added y\n", 1), ("", 0))
            for text, status in cases:
                message.seek(0)
                message.truncate()
                message.write(text)
                message.flush()
                done = subprocess.run([SCRIPT, "--message", message.name], capture_output=True)
                self.assertEqual(done.returncode, status, text)


class Repositories(unittest.TestCase):
    script = load_script()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-commits-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve() / "tree"
        (self.root / "scripts").mkdir(parents=True)

    def git(self, *arguments, cwd=None):
        nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments],
            cwd=cwd or self.root, env={**os.environ, **nothing}, check=True, capture_output=True,
        )

    def commit(self, subject, path):
        (self.root / path).write_text(subject)
        self.git("add", path)
        self.git("commit", "-m", subject)

    def problems(self, root=None):
        commits = self.script.default_range(root or self.root)
        return None if commits is None else self.script.problems_in(commits, root or self.root)

    def history(self):
        self.git("init")
        self.commit("what was wrong before", "old")
        self.commit("the script", self.script.ITSELF)
        self.commit("x: add y", "y")

    def test_tarball(self):
        self.assertIsNone(self.problems())

    def test_inside_another_repository(self):
        self.git("init", cwd=self.root.parent)
        self.assertIsNone(self.problems())

    def test_old_commits_stay(self):
        self.history()
        self.assertEqual(self.problems(), [])

    def test_new_commits_count(self):
        self.history()
        self.commit("x: added z", "z")
        self.commit("x: add what is right", "right")
        self.assertEqual(len(self.problems()), 1)

    def test_shallow_clone(self):
        self.history()
        for subject in ("still wrong", "x: add z"):
            self.commit(subject, "z")
        clone = self.root.parent / "clone"
        self.git("clone", "--depth", "1", f"file://{self.root}", str(clone))
        self.assertEqual(self.problems(clone), [])


class ThisTree(unittest.TestCase):
    def test_subjects(self):
        done = subprocess.run([SCRIPT], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
