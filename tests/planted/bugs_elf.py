"""Bugs of Elf."""

from bug import ELF, ELF_ENGINE, ELF_SEGMENT, Bug

BUGS = [
    Bug(
        "elf: a row counts before it is there",
        ELF_SEGMENT,
        "  pool_.pm().flush(to, point.size_bytes());  // before it counts: the commit fences\n",
        "",
        ELF,
    ),
    Bug(
        "elf: the first erase of a table does not say so",
        ELF_ENGINE,
        "    pool().pm().publish(version.table().erased, 1);\n",
        "",
        ELF,
    ),
]
