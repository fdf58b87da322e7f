#include "index/common/hash_seed.h"

#include <algorithm>

#include "pm/probe.h"
#include "wal/log.h"

namespace perdix::detail::index {

std::uint64_t draw_hash_seed() {
  return pm::hash_seed(std::max<std::uint64_t>(wal::draw_seed(), 1));
}

}  // namespace perdix::detail::index
