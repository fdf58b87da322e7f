#!/usr/bin/env python3
"""The programs in docs/tips.md are those that tests/install compiles and runs. The README of
examples/ and the install test know every program there."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECTS = ROOT / "tests/install"
FILES = {"outside/list.h", "outside/use_list.cc", "outside/table.h", "outside/table.c",
         "outside/use_table.c", "plugins/use_art.c"}
EXAMPLE_PROGRAMS = sorted((ROOT / "examples").glob("*.cc"))
NAME_EXAMPLES = ["examples/README.md", "examples/CMakeLists.txt", "tests/install/install_test.sh"]
# A file's name, then its text.
_EXAMPLE = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    shown = dict(_EXAMPLE.findall((ROOT / "docs/tips.md").read_text()))
    wrong = [file for file in sorted(FILES)
             if shown.pop(pathlib.Path(file).name, None) != (PROJECTS / file).read_text()]
    for file in wrong:
        print(f"docs/tips.md does not show {file} as it is in tests/install")
    for name in shown:
        print(f"docs/tips.md shows {name}, which no test compiles")
    unknown = [f"{path} does not name {program.stem}" for program in EXAMPLE_PROGRAMS
               for path in NAME_EXAMPLES if program.stem not in (ROOT / path).read_text()]
    print("\n".join(unknown) or f"{len(EXAMPLE_PROGRAMS)} examples")
    return 1 if wrong or shown or unknown or not EXAMPLE_PROGRAMS else 0


if __name__ == "__main__":
    sys.exit(main())
