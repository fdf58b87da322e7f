#include "index/elf/current_version.h"

#include <utility>

namespace perdix::detail::index::elf {

CurrentVersion::~CurrentVersion() {
  filler_.stop();
  delete version_.load(std::memory_order_acquire);
}

/// Makes the cache that a policy asks for, still empty; null if it asks for none.
std::unique_ptr<Cache> CurrentVersion::new_cache(const Version& version,
                                                 const CachePolicy& policy) const {
  const bool none =
      !policy.full && policy.levels == 0 && policy.dynamic_bytes == 0 && policy.probable_bytes == 0;
  if (none) return nullptr;
  return std::make_unique<Cache>(version.lists(), policy, reclaimer_);
}

void CurrentVersion::cache(const CachePolicy& policy) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Cache> next = new_cache(get(), policy);
  policy_ = policy;
  filler_.stop();  // it may be filling the cache that is replaced
  Cache* const before = get().exchange_cache(next.release());
  if (before != nullptr) reclaimer_.retire(before);
  fill_cache();
}

/// Starts to fill the cache of the current version, if it has one. The caller holds the mutex, and
/// no filler runs.
void CurrentVersion::fill_cache() {
  if (Cache* const cache = get().cache())
    filler_.start([cache](const std::stop_token& stop) { cache->fill(stop); });
}

}  // namespace perdix::detail::index::elf
