#!/usr/bin/env python3
"""The programs in docs/tips.md are those that tests/install compiles and runs. The README of
examples/ and the install test know every program there."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests/install/outside"
FILES = {"list.h", "use_list.cc", "table.h", "table.c", "use_table.c"}
EXAMPLE_PROGRAMS = sorted((ROOT / "examples").glob("*.cc"))
NAME_EXAMPLES = ["examples/README.md", "examples/CMakeLists.txt", "tests/install/install_test.sh"]
# A file's name, then its text.
_EXAMPLE = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    shown = dict(_EXAMPLE.findall((ROOT / "docs/tips.md").read_text()))
    wrong = [name for name in sorted(FILES | shown.keys())
             if shown.get(name) != (EXAMPLES / name).read_text()]
    for name in wrong:
        print(f"docs/tips.md does not show {name} as it is in tests/install/outside")
    unknown = [f"{path} does not name {program.stem}" for program in EXAMPLE_PROGRAMS
               for path in NAME_EXAMPLES if program.stem not in (ROOT / path).read_text()]
    print("\n".join(unknown) or f"{len(EXAMPLE_PROGRAMS)} examples")
    return 1 if wrong or unknown or not EXAMPLE_PROGRAMS else 0


if __name__ == "__main__":
    sys.exit(main())
