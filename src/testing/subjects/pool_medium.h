// How a pool is made on a medium.
#pragma once

#include <cstdint>

#include <perdix/pool.h>

#include "pm/domain.h"

namespace perdix::testing {

inline constexpr std::uint64_t kPoolSize = std::uint64_t{16} << 20;

/// Options of a pool that relies on what the domain keeps: on caches through the end of a process,
/// on everything else through a power failure.
inline PoolOptions pool_options(pm::Domain domain) {
  PoolOptions options;
  options.max_size = 2 * kPoolSize;
  options.durability = domain == pm::Domain::cpu_cache ? Durability::process : Durability::power;
  options.domain = static_cast<DomainChoice>(domain);
  return options;
}

}  // namespace perdix::testing
