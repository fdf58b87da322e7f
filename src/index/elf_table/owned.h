// Which blocks an ElfTable owns, by the rules of index/common/owned.h.
//
// Each word that leads to a block is cleared by the commit that frees the block. So it leads to an
// allocated block, or is 0, at every moment, and the blocks of an unfinished build are reached from
// the generation word that does not count.
#pragma once

#include <cstdint>

#include "index/common/owned.h"
#include "index/elf_table/layout.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf_table {

/// Tells of a generation, 0 or 1, but not of its tree of inserted rows, which may belong to the
/// other one (T7). Throws corrupt.
void walk_generation(const pool::PoolCore& pool, Root& root, unsigned number, Owned& owned);

/// Tells of the root's block, which leads to the generations by `root_word`.
void walk_root(const Root& root, std::uint64_t& root_word, Owned& owned);

/// Frees the generation that does not count, if there is one (T1), but not a tree that belongs to
/// the other one (T7). No caller may have it open.
void free_spare(pool::PoolCore& pool, Root& root);

/// Frees everything that the root word leads to, and clears it.
void free_all(pool::PoolCore& pool, std::uint64_t& root_word);

}  // namespace perdix::detail::index::elf_table
