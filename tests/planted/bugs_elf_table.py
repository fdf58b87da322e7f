"""Bugs of ElfTable."""

from bug import (
    ELF_TABLE,
    ELF_TABLE_BLOCKS,
    ELF_TABLE_BUILD,
    ELF_TABLE_CALLS,
    ELF_TABLE_OWNED,
    ELF_TABLE_RECOVERY,
    ELF_TABLE_SOURCE,
    ELF_TABLE_VERSION,
    Bug,
    drop,
    drop_part,
    swap_part,
    unit,
)

UNIT = (unit("src/index/elf_table/elf_table_test", "*"),)

BUGS = [
    drop(
        "elf_table: codes count before they are there",
        ELF_TABLE_BLOCKS,
        "pool.pm().persist",
        ELF_TABLE,
    ),
    drop(
        "elf_table: a generation counts before its rows and dimensions are there",
        ELF_TABLE_BUILD,
        "pool().pm().flush",
        ELF_TABLE,
    ),
    drop(
        "elf_table: opening leaves what a build had made",
        ELF_TABLE_RECOVERY,
        "free_spare(pool(), *root_)",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: a generation's own block is freed before those that it leads to",
        ELF_TABLE_OWNED,
        "  elf::walk(pool, generation.elf, owned);\n",
        "  if (owned.drops()) walk_block(word, 0, \"a generation\", owned);\n"
        "  elf::walk(pool, generation.elf, owned);\n",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: the rows of a build count before it has built its Elf",
        ELF_TABLE_BUILD,
        "  build_elf(next->version, codes, progress);\n",
        "  pool().pm().commit(root_->current, 1 - current_of(*root_));\n"
        "  build_elf(next->version, codes, progress);\n"
        "  pool().pm().commit(root_->current, 1 - current_of(*root_));\n",
        ELF_TABLE,
    ),
    swap_part(
        "elf_table: a build counts, but not durably",
        ELF_TABLE_BUILD,
        "pool().pm().commit",
        "commit",
        "store",
        ELF_TABLE,
    ),
    drop(
        "elf_table: rows that were erased come back by a compact",
        ELF_TABLE_SOURCE,
        "if (!version_.elf().has_listed(slot))",
        ELF_TABLE,
    ),
    drop(
        "elf_table: rows that are erased during a compact come back",
        ELF_TABLE_BUILD,
        "erase_all(next->version, erased_meanwhile_.take())",
        UNIT,
    ),
    drop(
        "elf_table: a compact takes the inserted rows over, but not durably",
        ELF_TABLE_VERSION,
        "pool_.pm().flush(&layout_.inserted",
        ELF_TABLE,
    ),
    drop_part(
        "elf_table: a generation that goes takes the inserted rows of the other one along",
        ELF_TABLE_OWNED,
        "if (pm::load(generation.inserted) != kept)",
        "if (pm::load(generation.inserted) != kept) ",
        ELF_TABLE,
    ),
    drop(
        "elf_table: opening leaves rows that a compact has folded in",
        ELF_TABLE_RECOVERY,
        "version().erase_folded()",
        UNIT,
    ),
    drop_part(
        "elf_table: a drop of which only the root is left never ends",
        ELF_TABLE_OWNED,
        "if (pm::load(root.generations[current_of(root)]) != pm::kNull) free_spare",
        "if (pm::load(root.generations[current_of(root)]) != pm::kNull) ",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: the blocks of a generation leak",
        ELF_TABLE_OWNED,
        "  owned.release(pm::set_word(word, pm::kNull), OwnedBlocks(block, bytes, what));\n",
        "  const OwnedBlocks blocks(block, bytes, what);\n"
        "  owned.release(pm::set_word(word, pm::kNull), owned.drops() ? OwnedBlocks() : blocks);\n",
        ELF_TABLE,
    ),
    drop(
        "elf_table: the inserted rows of a generation leak",
        ELF_TABLE_OWNED,
        "InsertedRows::destroy",
        ELF_TABLE,
    ),
    drop(
        "elf_table: a table counts before its root is there",
        ELF_TABLE_BLOCKS,
        "pool.pm().flush(to, sizeof root + names.size())",
        ELF_TABLE,
    ),
    drop(
        "elf_table: a generation that is begun counts before it is zeroed, durably",
        ELF_TABLE_BLOCKS,
        "pool.pm().flush(&generation, bytes_of_generation(columns))",
        ELF_TABLE,
    ),
    swap_part(
        "elf_table: a compact loses the rows that were inserted",
        ELF_TABLE_SOURCE,
        "if (record.empty())",
        "record.empty()",
        "true",
        ELF_TABLE,
    ),
    drop_part(
        "elf_table: after an opening the number of a row is given again",
        ELF_TABLE_CALLS,
        "next_tid_ = std::max",
        " + 1",
        ELF_TABLE,
    ),
    Bug(
        "elf_table: an inserted row that was erased leaves its number to the next",
        ELF_TABLE_CALLS,
        "  version().inserted().put(tid, {});\n",
        "  version().inserted().erase(tid);\n",
        ELF_TABLE,
    ),
    drop(
        "elf_table: rows that a query shows are freed",
        ELF_TABLE_BUILD,
        "if (replaced_->visitors != 0)",
        UNIT,
    ),
]
