// How a pool is made on a medium.
#pragma once

#include <cstdint>

#include <perdix/pool.h>

#include "pm/domain.h"
#include "pm/file.h"
#include "pool/pool_core.h"
#include "testing/medium.h"

namespace perdix::testing {

inline constexpr std::uint64_t kPoolSize = std::uint64_t{16} << 20;

/// The greatest size of a pool.
enum class PoolRoom : std::uint64_t { enough = 2 * kPoolSize, none = kPoolSize };

/// Options of a pool that relies on the domain: on caches through the end of a process, on
/// everything else through a power failure.
inline PoolOptions pool_options(detail::pm::Domain domain, PoolRoom room = PoolRoom::enough) {
  PoolOptions options;
  options.max_size = static_cast<std::uint64_t>(room);
  options.durability =
      domain == detail::pm::Domain::cpu_cache ? Durability::process : Durability::power;
  options.domain = static_cast<DomainChoice>(domain);
  return options;
}

/// A new closed pool, which replaces the content of the medium.
inline void make_pool(Medium& medium, detail::pm::Domain domain, PoolRoom room = PoolRoom::enough) {
  medium.empty();
  detail::pool::PoolCore::create(detail::pm::File::open(medium.path()), pool_options(domain, room))
      ->close();
  medium.restore_length();
}

}  // namespace perdix::testing
