// A word in PM that owns a block of the allocator: it is the commit word of the block's allocation
// and of its release, so a crash leaves the word and the block in agreement.
#pragma once

#include <cstdint>
#include <string>

#include "pm/offset.h"
#include "pool/pool_core.h"

namespace perdix::detail::wal {

/// Allocates a block and stores its offset in the word, which is 0. The block's content is whatever
/// it was. Throws Errc::out_of_space, nothing changed.
void allocate_into(pool::PoolCore& pool, pm::Offset& word, std::uint64_t bytes);

/// Frees the word's block, if it has one, and makes the word 0. Throws Errc::corrupt if no block is
/// there, nothing changed.
void free_from(pool::PoolCore& pool, pm::Offset& word);

/// Throws Errc::corrupt: the log contradicts itself, in the way that `what` says.
[[noreturn]] void throw_corrupt(const pool::PoolCore& pool, const std::string& what);

}  // namespace perdix::detail::wal
