#!/usr/bin/env python3
"""Makes the sources of a form of NbTree, which differs from the engine in what patches say: copies
src/index/nbtree, patches it, puts it into a namespace of its own, and writes a source that compiles
all of it.

    make_form.py NAME DIRECTORY PATCH...

The copy is DIRECTORY/index/nbtree_NAME, the source DIRECTORY/nbtree_NAME.cc. When a patch does not
fit any more: apply it by hand to a copy of the engine with `patch -p1`, mend that, and make the
patch anew by `diff -u -r -U2 a b`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENGINE = HERE.parents[1] / "src/index/nbtree"
ADDED = ("leaf_lock.h", "metadata_copy.h")
NOT_OF_THE_TREE = re.compile(r"test_.*|.*_test\.cc|api\.cc|.*\.txt")


def renamed(text, name):
    """A source in the namespace of the form, for integers only."""
    text = text.replace('"index/nbtree/', f'"index/nbtree_{name}/')
    text = re.sub(r"\bnamespace perdix::detail::index::nbtree\b", rf"\g<0>_{name}", text)
    text = re.sub(r"\bnbtree::(?=\w)", f"nbtree_{name}::", text)
    return re.sub(r"^(extern )?template class \w+<std::string>;\n", "", text, flags=re.MULTILINE)


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(name, directory, *patches):
    with tempfile.TemporaryDirectory() as work:
        for source in (*ENGINE.iterdir(), *(HERE / header for header in ADDED)):
            if not NOT_OF_THE_TREE.fullmatch(source.name):
                shutil.copy(source, work)
        for patch in patches:
            command = ["patch", "-p1", "--silent", "--no-backup-if-mismatch", "-i", HERE / patch]
            if subprocess.run(command, cwd=work).returncode != 0:
                sys.exit(f"{patch} does not fit src/index/nbtree any more: see {__file__}")
        copy = Path(directory) / "index" / f"nbtree_{name}"
        copy.mkdir(parents=True, exist_ok=True)
        sources = sorted(Path(work).iterdir())
        for source in sources:
            write_if_changed(copy / source.name, renamed(source.read_text(), name))
    units = [f'#include "index/nbtree_{name}/{s.name}"\n' for s in sources if s.suffix == ".cc"]
    (Path(directory) / f"nbtree_{name}.cc").write_text("".join(units))


if __name__ == "__main__":
    main(*sys.argv[1:])
