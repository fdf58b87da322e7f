// Lists that queries visit are copied to DRAM, and found there by their positions: the dynamic part
// of a cache.
//
// A hash table of buckets with four places. A list is added when it is missed for the second time
// within a short time, so that one large query does not fill the cache with lists that are not
// needed again. If the bucket or the budget is full, one of the bucket's lists is evicted: one that
// was not used since the last check, or the one with the fewest rows below it. If none may go, the
// new list is not added.
//
// Readers look into one bucket, take no lock, and write only to a copy that they use for the first
// time since. One thread at a time adds lists; the others skip it. Evicted lists are freed after a
// grace period: callers are in an epoch::Guard.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <perdix/elf.h>

#include "alloc/zeroed_array.h"
#include "epoch/reclaimer.h"
#include "index/elf/lists.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::elf {

class DynamicCache {
 public:
  /// Less has no room for a list.
  static constexpr std::uint64_t kMinBudget = 512;

  /// `budget`: for copies and the table that finds them, at least kMinBudget. `lists`: bytes of
  /// all lists that it may get, so that a budget that is larger makes no larger table.
  DynamicCache(epoch::Reclaimer& reclaimer, std::uint64_t budget, CachePolicy::Eviction eviction,
               std::uint64_t lists);
  ~DynamicCache();
  DynamicCache(const DynamicCache&) = delete;
  DynamicCache& operator=(const DynamicCache&) = delete;

  /// Finds the copy of a list.
  bool find(Position position, List& list);

  /// A list of the lists was missed.
  void missed(const Lists& lists, const List& list, unsigned dimension) noexcept;

  /// Of copies and the table.
  std::uint64_t bytes() const { return table_bytes() + bytes_.load(std::memory_order_relaxed); }
  std::uint64_t table_bytes() const {
    return buckets_ * (sizeof(Bucket) + kPlaces * sizeof(std::uint16_t));
  }
  std::uint64_t budget() const { return budget_.load(std::memory_order_relaxed); }

  /// From now on it takes no more than that, but for lists that are there.
  void set_budget(std::uint64_t budget) { budget_.store(budget, std::memory_order_relaxed); }

 private:
  struct Copy;
  static constexpr unsigned kPlaces = 4;
  using Bucket = std::array<std::atomic<Copy*>, kPlaces>;

  static Copy* copy(const Lists& lists, const List& list, unsigned dimension);
  std::uint64_t hash(Position position) const;
  bool seen_before(std::uint64_t hash);
  std::atomic<Copy*>* place_for(Bucket& bucket, const Copy& copy);
  std::atomic<Copy*>* victim(Bucket& bucket, const Copy& copy);
  void put(std::atomic<Copy*>& place, Copy* copy);

  epoch::Reclaimer& reclaimer_;
  std::atomic<std::uint64_t> budget_;
  const CachePolicy::Eviction eviction_;
  const std::uint64_t buckets_;  // a power of two
  const alloc::ZeroedArray<Bucket> table_;
  const alloc::ZeroedArray<std::atomic<std::uint16_t>> missed_;  // hashes of lists that were missed
  std::atomic<std::uint64_t> bytes_{0};                          // of copies
  util::SpinLock lock_;  // of the thread that adds a list; only
                         // tried
};

}  // namespace perdix::detail::index::elf
