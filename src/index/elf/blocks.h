// The blocks of an Elf: walking over them, and freeing them so that a crash in between is continued
// by the next call.
//
// A block is freed by an allocator session whose commit clears the word that leads to it. So each
// word leads to an allocated block, or is 0, at every moment.
#pragma once

#include <cstdint>
#include <functional>

#include "index/elf/layout.h"
#include "pm/offset.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf {

/// The Root that the root word leads to. Throws corrupt.
Root& checked_root(const pool::PoolCore& pool, pm::Offset offset);

/// Frees the table that does not count, if there is one (L1). Returns whether there was one. Only
/// one thread at a time may do this, and none may build.
bool free_spare(pool::PoolCore& pool, Root& root);

/// Frees everything that the root word leads to, and clears it.
void free_all(pool::PoolCore& pool, std::uint64_t& root_word);

/// Shows all blocks. Throws corrupt.
void for_each_block_of(const pool::PoolCore& pool, pm::Offset root_block,
                       const pool::BlockVisitor& visit);

}  // namespace perdix::detail::index::elf
