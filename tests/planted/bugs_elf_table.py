"""Bugs of ElfTable."""

from bug import ELF_TABLE, ELF_TABLE_BLOCKS, ELF_TABLE_BUILD, ELF_TABLE_RECOVERY, Bug

BUGS = [
    Bug(
        "elf_table: codes count before they are there",
        ELF_TABLE_BLOCKS,
        "    pool.pm().persist(to + begin, bytes);\n",
        "",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: a generation counts before its rows and dimensions are there",
        ELF_TABLE_BUILD,
        "  pool().pm().flush(&generation,"
        " sizeof generation + columns.size() * sizeof(ColumnLayout));\n",
        "",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: opening leaves what a build had made",
        ELF_TABLE_RECOVERY,
        "  free_spare(pool(), *root_);\n",
        "",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: a generation's own block is freed before those that it leads to",
        ELF_TABLE_BLOCKS,
        "  elf::Table::destroy(pool, generation.elf);\n",
        "  free_block(pool, word);\n  elf::Table::destroy(pool, generation.elf);\n",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: the rows of a build count before it has built its Elf",
        ELF_TABLE_BUILD,
        "  build_elf(next->version, codes, source, progress);\n",
        "  pool().pm().commit(root_->current, 1 - current_of(*root_));\n"
        "  build_elf(next->version, codes, source, progress);\n"
        "  pool().pm().commit(root_->current, 1 - current_of(*root_));\n",
        ELF_TABLE,
    ),
]
