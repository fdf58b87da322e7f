// Retries a write when the pool is full.
#pragma once

#include <perdix/error.h>

#include "pool/pool_core.h"

namespace perdix::detail::index {

/// Calls write(). If the pool is full, has its indexes give back garbage blocks, waits for their
/// grace period and calls again, as long as something comes back. It stops after kMaxRounds, since
/// other threads that free and allocate must not keep this thread here without end. A thread that
/// is in an epoch::Guard would wait for itself; it gets out_of_space. `write` is passed by
/// reference: to copy what it refers to, the processor would wait for all stores that it has begun,
/// also those of the previous call to uncached memory.
template <class Write>
[[gnu::always_inline]] inline auto retry_when_full(pool::PoolCore& pool, const Write& write) {
  constexpr unsigned kMaxRounds = 3;
  bool again = true;
  for (unsigned round = 1;; ++round) {
    try {
      return write();  // only here, so it is inlined
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space || !again) throw;
    }
    // Once more in any case: another thread may have made space.
    again = pool.reclaim_space() && round < kMaxRounds;
  }
}

}  // namespace perdix::detail::index
