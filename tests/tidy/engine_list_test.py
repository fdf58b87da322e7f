#!/usr/bin/env python3
"""Each engine, a folder of src/index, has everything that CONTRIBUTING.md asks of one."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What an engine must have, with {} for its name. Templates are in a header.
FILES = [
    "include/perdix/**/{}.h",
    "src/index/{}/CMakeLists.txt",
    "src/index/{}/layout.h",
    "src/index/{}/{}.h",
    "src/index/{}/recovery.*",
    "src/index/{}/check.*",
    "docs/durability/{}.md",
    "docs/format/{}.md",
    "tests/planted/bugs_{}.py",
]

# And, as it holds pairs or points.
PAIRS_FILES = ["src/index/{}/test_traits.h", "bench/systems/{}.cc"]
POINTS_FILES = ["src/index/{}/test_points.h"]

# Where it must be named, and how. perdix.h includes it, or it is one of the papers' (tiers of
# headers, docs/ARCHITECTURE.md).
LINES = {"cmake/engines.cmake": r"set\(PERDIX_ALL_ENGINES[^)]*\b{}\b"}
FRONT_LINES = LINES | {"include/perdix/perdix.h": r"#include <perdix/{}\.h>"}


def papers_header(engine: str) -> pathlib.Path:
    return ROOT / f"include/perdix/papers/{engine}.h"


def public_class(engine: str) -> str:
    papers = papers_header(engine)
    header = (papers if papers.exists() else ROOT / f"include/perdix/{engine}.h").read_text()
    name = engine.replace("_", "")
    named = re.search(rf"^class ({name})\b", header, re.MULTILINE | re.IGNORECASE)
    return named.group(1)


def problems_of(engine: str) -> list[str]:
    points = (ROOT / POINTS_FILES[0].replace("{}", engine)).exists()
    files = FILES + (POINTS_FILES if points else PAIRS_FILES)
    missing = [f.replace("{}", engine) for f in files
               if not any(ROOT.glob(f.replace("{}", engine)))]
    problems = [f"{engine}: there is no {path}" for path in missing]
    lines = LINES if papers_header(engine).exists() else FRONT_LINES
    for path, pattern in lines.items():
        if not re.search(pattern.replace("{}", engine), (ROOT / path).read_text()):
            problems.append(f"{engine}: {path} doesn't name it")
    if not missing and f"| `{public_class(engine)}` |" not in (ROOT / "README.md").read_text():
        problems.append(f"{engine}: README.md has no row for it")
    return problems


def main() -> int:
    folders = [path.name for path in (ROOT / "src/index").iterdir()
               if path.is_dir() and path.name != "common"]
    if not folders:
        print("no engines were found")
        return 1
    if len(problems_of("nonesuch")) < len(FILES) + len(FRONT_LINES):
        print("an engine that has nothing is taken for one")
        return 1
    problems = [problem for engine in sorted(folders) for problem in problems_of(engine)]
    print("\n".join(problems) or f"complete: {', '.join(sorted(folders))}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
