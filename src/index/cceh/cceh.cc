#include "index/cceh/cceh.h"

#include <chrono>
#include <exception>

#include "epoch/guard.h"
#include "index/cceh/check.h"
#include "index/cceh/for_each.h"
#include "index/cceh/owned.h"
#include "index/common/limits.h"
#include "index/common/retry.h"
#include "pool/as_errors.h"

namespace perdix::detail::index::cceh {

template <class K>
WordTable<K>::WordTable(pool::IndexHandle handle, const Shape& shape, const CcehOptions& options)
    : handle_(std::move(handle)),
      root_(*retry_when_full(pool(), [&] { return &open_root(pool(), handle_.root(), shape); })),
      search_(pool(), root_, shape_of(pool(), root_), info().value_kind),
      writer_(pool(), root_, values()),
      structure_(search_, writer_) {
  const auto start = std::chrono::steady_clock::now();
  {
    const epoch::Guard guard;
    search_.locate({0});  // throws corrupt here, not at the first use, if the directory is damaged
  }
  search_.open(options, pairs_);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  entry_.emplace(pool().open_indexes(), *this);
}

template <class K>
void WordTable<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  cceh::destroy<K>(pool, root, value_kind);
}

// --- Changes -------------------------------------------------------------------------------------

template <class K>
bool WordTable<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(pool(), [&] { return try_write({key, value, mode, expected}); });
}

template <class K>
bool WordTable<K>::try_write(const Write& write) {
  if (search_.buffers() != nullptr) search_.buffers()->keep_short();
  const epoch::Guard guard;
  const KeyHash hash = search_.segments().hash_of(write.key);
  for (;;) {
    if (const auto done = write_segment(write, hash)) return *done;
  }
}

/// One attempt. Returns nullopt if the segment had to get room first.
template <class K>
std::optional<bool> WordTable<K>::write_segment(const Write& write, KeyHash hash) {
  const auto& [key, value, mode, expected] = write;
  LockedSegment locked;
  search_.lock(locked, key, hash);
  if (const auto found = search_.find_buffered(locked, key, hash)) {
    if (mode == Mode::insert) return false;
    return search_.buffers()->replace(locked, found, value, expected);
  }
  const FoundSlots slots = search_.segments().search(locked.entry, locked.range, key, hash);
  if (slots.found != nullptr) {
    if (mode == Mode::insert || !value_is(pm::load(slots.found->value), expected)) return false;
    writer_.replace(*slots.found, value);
    return true;
  }
  if (mode == Mode::update) return false;
  return write_new(locked, write, hash, slots);
}

/// write_segment() for a key that the locked segment does not have: adds it.
template <class K>
std::optional<bool> WordTable<K>::write_new(LockedSegment& locked, const Write& write, KeyHash hash,
                                            const FoundSlots& slots) {
  using Added = typename SegmentBuffers<K>::Added;
  SegmentBuffers<K>* const buffers = search_.buffers();
  if (buffers != nullptr && !Segments<K>::is_zero(write.key)) {
    const Added outcome = buffers->add(locked, write.key, write.value, hash.tag());
    if (outcome == Added::added) return true;
    if (outcome == Added::merged) return std::nullopt;
  }
  Pair* free = slots.free;
  if (free == nullptr) free = structure_.make_room(locked, hash, slots.free_in_overflow);
  if (free == nullptr) return std::nullopt;
  writer_.add(*free, write.key, write.value, hash.tag());
  pairs_.add();
  return true;
}

template <class K>
bool WordTable<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const epoch::Guard guard;
  const KeyHash hash = search_.segments().hash_of(key);
  LockedSegment locked;
  search_.lock(locked, key, hash);
  if (const auto found = search_.find_buffered(locked, key, hash))
    return search_.buffers()->erase(found, expected);
  Pair* const found = search_.segments().find(locked.entry, key, hash);
  if (found == nullptr || !value_is(pm::load(found->value), expected)) return false;
  writer_.remove(*found);
  pairs_.remove();
  return true;
}

template <class K>
bool WordTable<K>::reclaim_space() noexcept {
  bool any = search_.buffers() != nullptr && search_.buffers()->reclaim_space();
  try {
    while (structure_.join_empty_segments()) any = true;
  } catch (const std::exception&) {
    // There is no memory, or the pool is damaged, which the next call that reads there reports.
  }
  return any;
}

// --- All pairs -----------------------------------------------------------------------------------

template <class K>
void WordTable<K>::for_each(const PairSink<K>& show) const {
  PairReader<K> reader(search_);
  EachBatch<K> batch;
  for (bool more = true; more;) {
    more = pool::as_errors(pool(), [&] { return reader.read(batch); });
    if (!show(batch.copied()).all) return;
  }
}

template <class K>
std::uint64_t WordTable<K>::size() const {
  return Survey<K>(search_, pairs_).size();
}

template <class K>
IndexStats WordTable<K>::stats() const {
  IndexStats stats = Survey<K>(search_, pairs_).stats();
  stats.dram_bytes += sizeof *this;
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

template <class K>
CheckReport WordTable<K>::check() const {
  return Survey<K>(search_, pairs_).check();
}

template <class K>
void WordTable<K>::for_each_block(const BlockVisitor& visit) const {
  Survey<K>(search_, pairs_).for_each_block(visit);
}

template class WordTable<std::uint64_t>;
template class WordTable<std::string>;

}  // namespace perdix::detail::index::cceh
