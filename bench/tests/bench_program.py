"""What the tests of `perdix-bench figure` and `perdix-bench special` have in common."""

import json
import subprocess
import tempfile
from pathlib import Path


class Program:
    """perdix-bench with its first arguments."""

    def __init__(self, *command):
        self.command = command

    def run(self, *options):
        return subprocess.run(
            [*self.command, *options], capture_output=True, timeout=300, text=True
        )


class RunOnce:
    """Runs a benchmark once for all tests of a class: `done`, the report and the page that it
    wrote, and the names of the files that are left."""

    @classmethod
    def run_once(cls, program, *options):
        with tempfile.TemporaryDirectory(prefix="perdix-bench-test-") as scratch:
            paths = {name: Path(scratch) / f"report.{name}" for name in ("json", "html")}
            cls.done = program.run(
                *options, "--pool-dir", scratch, "--progress",
                "--json", str(paths["json"]), "--html", str(paths["html"]),
            )
            assert cls.done.returncode == 0, cls.done.stderr
            cls.report = json.loads(paths["json"].read_text())
            cls.html = paths["html"].read_text()
            cls.left = {path.name for path in Path(scratch).iterdir()}

    def rows(self, figure):
        return self.report["figures"][figure]["rows"]


class CommandLine:
    """Tests of help and of what is refused. `program`, `taught` and `nonsense` are the class's."""

    def test_help_teaches(self):
        done = self.program.run("--help")
        self.assertEqual(done.returncode, 0)
        for expected in ("Examples", "Exit status", *self.taught):
            self.assertIn(expected, done.stdout)

    def test_refuses_nonsense(self):
        everywhere = (
            ["--pool-dir", "/no/such/place"], ["--repeat", "0"], ["--threads", "0"],
            ["--frobnicate"], ["surplus"],
        )
        for options in (*everywhere, *self.nonsense):
            done = self.program.run(*options)
            self.assertEqual(done.returncode, 2, (options, done.stderr))
            self.assertEqual(done.stdout, "", options)
            self.assertNotEqual(done.stderr.strip(), "", options)
