// Which blocks an Elf owns, by the rules of index/common/owned.h.
//
// Each word that leads to a block is cleared by the commit that frees the block. So it leads to an
// allocated block, or is 0, at every moment.
#pragma once

#include <cstdint>

#include "index/common/owned.h"
#include "index/elf/layout.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf {

/// Tells of all that the root word leads to. Throws corrupt.
void walk(const pool::PoolCore& pool, std::uint64_t& root_word, Owned& owned);

/// Frees the table that does not count, if there is one (L1). Returns whether there was one. Only
/// one thread at a time may do this, and none may build.
bool free_spare(pool::PoolCore& pool, Root& root);

}  // namespace perdix::detail::index::elf
