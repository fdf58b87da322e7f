#!/usr/bin/env python3
"""Which instruction set CMake chooses (cmake/march.cmake).

tests/march/configured_test.py COMPILER [unittest arguments]
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER = None
MARCH = Path(__file__).resolve().parents[2] / "cmake" / "march.cmake"


def run(*command):
    return subprocess.run(["cmake", *command], capture_output=True, text=True, timeout=120)


class ConfiguredTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-march-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def default_for(self, processor):
        script = self.folder / "script.cmake"
        script.write_text(
            "function(check_cxx_compiler_flag flag result)\n"
            "  set(${result} ON PARENT_SCOPE)\n"
            "endfunction()\n"
            f'file(READ "{MARCH}" text)\n'
            'string(REPLACE "include(CheckCXXCompilerFlag)" "" text "${text}")\n'
            'cmake_language(EVAL CODE "${text}")\n'
            'message("<${PERDIX_MARCH}> <${PERDIX_BASELINE}>")\n')
        return run(f"-DCMAKE_SYSTEM_PROCESSOR={processor}", "-P", str(script)).stderr.strip()

    def test_a_portable_set_is_the_default_on_x86(self):
        self.assertEqual(self.default_for("x86_64"), "<x86-64-v2> <-march=x86-64>")

    def test_other_targets_get_no_option(self):
        self.assertEqual(self.default_for("aarch64"), "<> <>")
        self.assertEqual(self.default_for("riscv64"), "<> <>")

    def configure(self, march):
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\n"
            "project(march LANGUAGES CXX)\n"
            f'include("{MARCH}")\n')
        return run("-S", str(self.folder), "-B", str(self.folder / march),
                   f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DPERDIX_MARCH={march}")

    def test_native_can_be_chosen(self):
        done = self.configure("native")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_unknown_set_is_an_error_that_says_what_to_do(self):
        done = self.configure("x86-64-v9")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("PERDIX_MARCH=x86-64-v9: ", done.stderr)
        self.assertIn("-DPERDIX_MARCH=", done.stderr)


if __name__ == "__main__":
    COMPILER = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
