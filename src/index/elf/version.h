// What queries read: the lists of one table, and the segments of rows that were inserted since. A
// build or a compact replaces the Version as a whole; a reader keeps its Version until the reader's
// epoch::Guard ends.
//
// Thread-safe. The lists never change. While readers read, bits of dead rows are set, segments are
// added and the cache is replaced; each setter is called by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "index/elf/caches/cache.h"
#include "index/elf/dead_rows.h"
#include "index/elf/erased_points.h"
#include "index/elf/layout.h"
#include "index/elf/lists.h"
#include "index/elf/segment.h"
#include "index/elf/walk.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf {

class Version {
 public:
  /// Opens the table at an offset. The caller adds the segments. Throws corrupt.
  Version(pool::PoolCore& pool, const Root& root, pm::Offset offset);
  Version(const Version&) = delete;
  Version& operator=(const Version&) = delete;
  ~Version() { delete cache(); }

  TableLayout& table() const { return table_; }
  const Lists& lists() const { return lists_; }
  std::uint64_t generation() const { return generation_; }

  /// Rows of the lists have TIDs below this; rows that were inserted since have this one or higher.
  std::uint64_t tids() const { return tids_; }

  /// Whether a row that the lists name was erased. Also true for a TID that no row of the lists can
  /// have, as a damaged file may name one, once a row was erased.
  bool is_dead(Tid tid, const DeadRows& dead_rows) const {
    if (!erased_.load(std::memory_order_acquire)) return false;
    return tid >= tids_ || dead_rows.is_dead(dead_, tid);
  }

  /// Whether the lists have no row with this TID, erased or not. For any TID below tids().
  bool is_missing(Tid tid, const DeadRows& dead_rows) const {
    return dead_rows.is_dead(dead_, tid);
  }

  std::uint64_t* dead() const { return dead_; }

  /// Called before the first row of the lists is erased: from now on is_dead() reads the bits.
  void set_erased() { erased_.store(true, std::memory_order_release); }
  bool erased() const { return erased_.load(std::memory_order_acquire); }

  /// The points of erased rows of the lists, which queries collect.
  ErasedPoints& erased_points() const { return erased_points_; }

  /// The first segment, or null. The caller of set_segments() owns the segments.
  Segment* segments() const { return segments_.load(std::memory_order_acquire); }
  void set_segments(Segment* first) { segments_.store(first, std::memory_order_release); }

  /// The copies of lists in DRAM; null: there are none. The Version owns its cache. The caller of
  /// exchange_cache() owns the one that is returned, and retires it, since readers may still use
  /// it.
  Cache* cache() const { return cache_.load(std::memory_order_acquire); }
  Cache* exchange_cache(Cache* cache) { return cache_.exchange(cache, std::memory_order_acq_rel); }

 private:
  TableLayout& table_;
  const std::uint64_t generation_;
  const std::uint64_t tids_;
  std::uint64_t* const dead_;
  const Lists lists_;
  std::atomic<bool> erased_;
  mutable ErasedPoints erased_points_;
  std::atomic<Segment*> segments_{nullptr};
  std::atomic<Cache*> cache_{nullptr};
};

/// Returns use(lists, source), with the lists and the source that a Walk or a Find reads: those of
/// the cache, if there is one. The caller is in an epoch::Guard.
template <class Use>
auto with_source(const Version& version, const Use& use) {
  if (const Cache* cache = version.cache()) {
    CacheSource source(version.lists(), *cache);
    return use(source.lists(), source);
  }
  PmSource source(version.lists());
  return use(version.lists(), source);
}

/// The Root at an offset. Throws corrupt.
Root& checked_root(const pool::PoolCore& pool, pm::Offset offset);

/// The table at an offset, which may be one that an unfinished build left. Throws corrupt.
TableLayout& checked_table(const pool::PoolCore& pool, pm::Offset offset);

}  // namespace perdix::detail::index::elf
