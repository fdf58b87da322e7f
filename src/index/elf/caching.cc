// Elf's cache() and explain(): the cache of the current version is made and replaced here. A filler
// thread fills it (caches/cache.h) while queries already read through it.
#include <mutex>
#include <utility>

#include "index/elf/caches/explain.h"
#include "index/elf/elf.h"

namespace perdix::detail::index::elf {
/// Makes the cache that a policy asks for, still empty; null if it asks for none. Throws bad_alloc.
std::unique_ptr<Cache> Table::new_cache(const Version& version, const CachePolicy& policy) const {
  const bool none =
      !policy.full && policy.levels == 0 && policy.dynamic_bytes == 0 && policy.probable_bytes == 0;
  if (none) return nullptr;
  return std::make_unique<Cache>(version.lists(), policy, pool().reclaimer());
}

void Table::cache(const CachePolicy& policy) {
  const std::lock_guard lock(caching_);
  std::unique_ptr<Cache> next = new_cache(version(), policy);
  policy_ = policy;
  filler_.stop();  // it may be filling the cache that is replaced
  Cache* const before = version().exchange_cache(next.release());
  if (before != nullptr) pool().reclaimer().retire(before);
  fill_cache();
}

/// Starts to fill the cache of the current version, if it has one. The caller holds caching_, and
/// no filler runs.
void Table::fill_cache() {
  if (Cache* const cache = version().cache())
    filler_.start([cache](const std::stop_token& stop) { cache->fill(stop); });
}

std::vector<ElfStep> Table::explain(const Box& box) const {
  std::vector<ElfStep> steps(dimensions_);
  const epoch::Guard guard;
  const Version& version = this->version();
  elf::explain(version.lists(), version.cache(), pm::load(version.table().rows), box, steps);
  return steps;
}

}  // namespace perdix::detail::index::elf
