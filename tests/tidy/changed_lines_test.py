#!/usr/bin/env python3
"""Making a volatile index durable changes no more lines of it than Table 2 of the paper says."""

import importlib.machinery
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Table 2 by the names of our sources.
MOST = {"hash_table": 5, "bst": 5, "btree": 8, "art": 9, "clht": 8, "lfhash": 5,
        "lfbst": 5}


def load_counter():
    path = str(ROOT / "scripts/changed_lines")
    loader = importlib.machinery.SourceFileLoader("changed_lines", path)
    spec = importlib.util.spec_from_loader("changed_lines", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main() -> int:
    sys.dont_write_bytecode = True
    counter = load_counter()
    sample = "void f() {\n  // Memory::add(p, 1);\n  Memory::add(p, 1);\n\n  int i = 0;\n}\n"
    if counter.count(sample) != (1, 4):
        print(f"counts {counter.count(sample)} in a source with one changed line of four")
        return 1
    counts = counter.counts()
    problems = [f"{name}: no such index" for name in MOST if name not in counts]
    for name, (changed, lines) in counts.items():
        if name not in MOST:
            problems.append(f"{name}: Table 2 has no figure for it here")
        elif not 0 < changed <= MOST[name]:
            problems.append(f"{name}: {changed} changed lines of {lines}, and {MOST[name]} at most")
    print("\n".join(problems) or ", ".join(f"{name}: {c[0]}/{c[1]}" for name, c in counts.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
