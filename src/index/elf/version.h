// What queries read: the lists of one table, and the segments of rows that were inserted since. A
// build or a compact replaces it as a whole; readers keep theirs until their Guard ends.
//
// Immutable, except as its members document.
#pragma once

#include <atomic>
#include <cstdint>

#include "index/elf/caches/cache.h"
#include "index/elf/dead_rows.h"
#include "index/elf/layout.h"
#include "index/elf/lists.h"
#include "index/elf/segment.h"
#include "index/elf/walk.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf {

class Version {
 public:
  /// Of the table at an offset; it has no segments yet. Throws corrupt.
  Version(pool::PoolCore& pool, const Root& root, pm::Offset offset);
  Version(const Version&) = delete;
  Version& operator=(const Version&) = delete;
  ~Version() { delete cache(); }

  TableLayout& table() const { return table_; }
  const Lists& lists() const { return lists_; }
  std::uint64_t generation() const { return generation_; }

  /// TIDs below it are of the lists.
  std::uint64_t tids() const { return tids_; }

  /// Whether a row of the lists is gone. A TID from a damaged file may be any.
  bool is_dead(Tid tid, const DeadRows& dead_rows) const {
    if (!erased_.load(std::memory_order_acquire)) return false;
    return tid >= tids_ || dead_rows.is_dead(dead_, tid);
  }

  /// The same of any TID below tids(): also whether the lists have a row of it at all.
  bool is_missing(Tid tid, const DeadRows& dead_rows) const {
    return dead_rows.is_dead(dead_, tid);
  }

  std::uint64_t* dead() const { return dead_; }

  /// Some of the lists' rows are gone from now on.
  void set_erased() { erased_.store(true, std::memory_order_release); }
  bool erased() const { return erased_.load(std::memory_order_acquire); }

  /// The first segment, or null. The caller of the setter owns it.
  Segment* segments() const { return segments_.load(std::memory_order_acquire); }
  void set_segments(Segment* first) { segments_.store(first, std::memory_order_release); }

  /// What of the lists lies in DRAM; null: nothing. Belongs to the Version.
  Cache* cache() const { return cache_.load(std::memory_order_acquire); }
  Cache* exchange_cache(Cache* cache) { return cache_.exchange(cache, std::memory_order_acq_rel); }

 private:
  TableLayout& table_;
  const std::uint64_t generation_;
  const std::uint64_t tids_;
  std::uint64_t* const dead_;
  const Lists lists_;
  std::atomic<bool> erased_;
  std::atomic<Segment*> segments_{nullptr};
  std::atomic<Cache*> cache_{nullptr};
};

/// Calls use(lists, source) with what a Walk reads: through the cache, if there is one.
template <class Use>
auto with_source(const Version& version, const Use& use) {
  if (const Cache* cache = version.cache()) {
    CacheSource source(version.lists(), *cache);
    return use(source.lists(), source);
  }
  PmSource source(version.lists());
  return use(version.lists(), source);
}

/// The table at an offset, complete or not. Throws corrupt.
TableLayout& checked_table(const pool::PoolCore& pool, pm::Offset offset);

}  // namespace perdix::detail::index::elf
