// The end of an index that is dropped.
#pragma once

#include <cstdint>

#include <perdix/types.h>

#include "index/tips/words.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Frees all blocks of an index and clears its root. Restartable: after a crash it goes on where it
/// was. Throws unsupported if the pool was opened without its plug-in, corrupt, out_of_space.
void destroy(pool::PoolCore& pool, std::uint64_t& root, Kinds kinds);

}  // namespace perdix::detail::index::tips
