// What a write does when the pool is full.
#pragma once

#include <perdix/error.h>

#include "pool/pool_core.h"

namespace perdix::index {

/// Calls write(). Blocks that wait for their grace period may be all the space that a full pool has
/// left: if there is no space, waits for it once, which can't be done under a guard, and calls
/// again. By reference: to copy what `write` refers to, the processor would wait for all stores
/// that it has begun, also those of the call before to memory that is in no cache.
template <class Write>
auto retry_when_full(pool::PoolCore& pool, const Write& write) {
  try {
    return write();
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
  }
  pool.allocator().reclaim();
  return write();
}

}  // namespace perdix::index
