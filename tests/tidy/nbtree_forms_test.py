"""The patches of NbTree's forms fit the engine. Only the benchmark compiles them."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FORMS = Path(__file__).resolve().parents[2] / "bench/nbtree_forms"
FORM = re.compile(r"^perdix_nbtree_form\((\w+) ([\w. ]+)\)$", re.MULTILINE)


class Forms(unittest.TestCase):
    def test_patches_fit(self):
        forms = FORM.findall((FORMS / "CMakeLists.txt").read_text())
        self.assertGreater(len(forms), 2)
        for name, patches in forms:
            with self.subTest(name), tempfile.TemporaryDirectory() as made:
                command = [sys.executable, FORMS / "make_form.py", name, made, *patches.split()]
                run = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
