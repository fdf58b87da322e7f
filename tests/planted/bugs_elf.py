"""Bugs of Elf."""

from bug import (
    ELF,
    ELF_BUILD,
    ELF_COUNTER,
    ELF_DEAD_ROWS,
    ELF_DYNAMIC_CACHE,
    ELF_ENGINE,
    ELF_ERASED_POINTS,
    ELF_IMAGE,
    ELF_LISTS,
    ELF_OUTLINE,
    ELF_OWNED,
    ELF_RECOVERY,
    ELF_REPLACEMENT,
    ELF_SEARCH,
    ELF_SEGMENT,
    ELF_SORTER,
    ELF_STREAM,
    ELF_UNIT,
    ELF_WALK,
    Bug,
    drop,
    drop_part,
    swap_part,
)

BUGS = [
    # --- Inserts and erases ---
    drop(
        "elf: a row counts before it is there",
        ELF_SEGMENT,
        "pool_.pm().flush",
        ELF,
    ),
    Bug(
        "elf: a row is visible before it is durable",
        ELF_SEGMENT,
        "  pool_.pm().commit(layout_->count, i + 1);  // the insert's commit\n"
        "  enter(i);\n"
        "  visible_.store(i + 1, std::memory_order_release);\n",
        "  enter(i);\n"
        "  visible_.store(i + 1, std::memory_order_release);\n"
        "  pool_.pm().commit(layout_->count, i + 1);\n",
        ELF,
    ),
    drop(
        "elf: a segment is linked before its head is durable",
        ELF_SEGMENT,
        "pool.pm().flush",
        ELF,
    ),
    Bug(
        "elf: the first erase of a table does not say so",
        ELF_ENGINE,
        "    pool().pm().store(erased, 1);\n",
        "    (void)erased;\n",
        ELF,
    ),
    Bug(
        "elf: a reader does not persist that a row is gone",
        ELF_DEAD_ROWS,
        "      pm_.persist(&word, sizeof word);  // as said above\n",
        "      (void)word;\n",
        ELF,
    ),
    drop_part(
        "elf: a row is found after it was erased from a segment",
        ELF_ENGINE,
        "if (!dead_rows_.is_dead(s->dead(), i))",
        "if (!dead_rows_.is_dead(s->dead(), i)) ",
        ELF_UNIT,
    ),
    # --- Creation, build, compact ---
    drop(
        "elf: a table is created before its root is durable",
        ELF_RECOVERY,
        "pool().pm().flush(to, sizeof root)",
        ELF,
    ),
    drop(
        "elf: a table counts before its fields are durable",
        ELF_BUILD,
        "pm.flush(&table, sizeof table)",
        ELF,
    ),
    swap_part(
        "elf: a table counts without a fence before",
        ELF_BUILD,
        "pm.commit(root_->current, replacement.spare())",
        "commit",
        "publish",
        ELF,
    ),
    drop(
        "elf: a block is linked before its contents are durable",
        ELF_REPLACEMENT,
        "pool_.pm().flush(to, bytes)",
        ELF,
    ),
    drop(
        "elf: pointers into a block that is linked already are not durable",
        ELF_REPLACEMENT,
        "pool_.pm().flush(&there, sizeof there)",
        ELF,
    ),
    drop_part(
        "elf: a new table is taken for the one before",
        ELF_REPLACEMENT,
        "pool_.pm().store(table_->generation, pm::load(current.generation) + 1)",
        " + 1",
        ELF,
        after="Replacement::Replacement(",
    ),
    drop(
        "elf: rows that are erased during a compact come back",
        ELF_ENGINE,
        "erased_meanwhile_.note(tid)",
        ELF_UNIT,
    ),
    drop_part(
        "elf: a compact forgets rows that were added during it",
        ELF_BUILD,
        "table.segments",
        " segments != nullptr ? segments->offset() :",
        ELF,
    ),
    drop(
        "elf: rows that are erased during a compact come back after a crash",
        ELF_REPLACEMENT,
        "pool_.pm().flush(&word, sizeof word)",
        ELF,
    ),
    # --- Freeing ---
    swap_part(
        "elf: an unfinished table gives the segments of the other one back",
        ELF_OWNED,
        "return pm::load",
        "spare.segments",
        "current.magic",
        ELF,
        after="load(spare.generation)",
    ),
    Bug(
        "elf: the segments of a table that was replaced are lost",
        ELF_OWNED,
        "  if (first != end) walk_list",
        "  if (first != end && !({planted} && owned.drops())) walk_list",
        ELF,
    ),
    Bug(
        "elf: a table's block is given back before the blocks that it leads to",
        ELF_OWNED,
        "  walk_block(table.dead, bits, \"a block of bits of dead rows\", owned);\n"
        "  walk_block(table.first_list, sizeof(FirstList), \"a first list\", owned);\n",
        "  if (owned.drops()) walk_block(word, sizeof table, \"a table\", owned);\n"
        "  walk_block(table.dead, bits, \"a block of bits of dead rows\", owned);\n"
        "  walk_block(table.first_list, sizeof(FirstList), \"a first list\", owned);\n"
        "  if (owned.drops()) return;\n",
        ELF,
    ),
    # --- Queries ---
    drop(
        "elf: a stream shows rows twice that a compact has moved",
        ELF_STREAM,
        "if (row.tid < window_ || row.tid >= window_end_)",
        ELF_UNIT,
    ),
    drop(
        "elf: a stream goes on with the row that it has shown",
        ELF_WALK,
        "if (on_path && tid <= after_->tid)",
        ELF_UNIT,
    ),
    Bug(
        "elf: equal rows are sorted against the order of their numbers",
        ELF_SORTER,
        "    each(rows, steps, [&](std::uint32_t row) { to[ends_[digit(row)]++] = row; });\n",
        "    for (std::size_t i = rows.size(); i > 0; --i)\n"
        "      to[ends_[digit(rows[i - 1])]++] = rows[i - 1];\n",
        ELF_UNIT,
    ),
    # --- Caches ---
    drop_part(
        "elf: a copy leads to that of the next list",
        ELF_IMAGE,
        "if (at == places_.end() || at->position != ref.value())",
        " || at->position != ref.value()",
        ELF_UNIT,
    ),
    drop(
        "elf: a dynamic cache finds another list of the bucket",
        ELF_DYNAMIC_CACHE,
        "if (copy->position != position)",
        ELF_UNIT,
    ),
    drop(
        "elf: an outline finds values that its list does not have",
        ELF_OUTLINE,
        "if ((bits[bit / 32] >> bit % 32 & 1) == 0)",
        ELF_UNIT,
    ),
    drop(
        "elf: an outline forgets the values before those of its word",
        ELF_OUTLINE,
        "before += i < bit",
        ELF_UNIT,
    ),
    # --- Counts ---
    drop(
        "elf: a count has erased rows",
        ELF_ENGINE,
        "if (rows > 0 && version.erased())",
        ELF_UNIT,
    ),
    swap_part(
        "elf: a count subtracts the rows that were erased before others",
        ELF_ERASED_POINTS,
        "return points->erases_ ==",
        "points->erases_ == begun_.load(std::memory_order_acquire) ? points : nullptr",
        "points",
        ELF_UNIT,
    ),
    swap_part(
        "elf: a set of values ends with its first interval",
        ELF_LISTS,
        "wanted = box.next",
        "box.next(dimension, here)",
        "box.upper[dimension]",
        ELF_UNIT,
    ),
    Bug(
        "elf: a count reads no MonoList, whatever its bounds",
        ELF_COUNTER,
        "        rows += !bounded || admits(child, dimension + 1) ? 1 : 0;\n",
        "        rows += 1;\n",
        ELF_UNIT,
    ),
    Bug(
        "elf: a search does not look at the line before the guessed one",
        ELF_SEARCH,
        "      to = begin;\n",
        "      return begin;\n",
        ELF_UNIT,
    ),
]
