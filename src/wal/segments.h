// The segments of one stripe: a ring of blocks that grows at its end and is freed at its start.
//
// Positions [start, end) have a segment. Segments [freed, start) are waiting to be freed; their
// ring words can't be used again before that. All of a stripe's positions carry its number in
// their low bits, so that start, end and tail compare like the numbers that they stand for.
//
// Thread-safe: changes happen under the space lock (lock order: space lock, Session, stripe lock),
// and at() may be called at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "pm/access.h"
#include "pool/pool_core.h"
#include "wal/layout.h"
#include "wal/record.h"

namespace perdix::detail::wal {

class Segments {
 public:
  /// Of a log that was made before. Throws Errc::corrupt if a word of the layout is impossible.
  Segments(pool::PoolCore& pool, StripeLayout& layout, unsigned stripe);

  /// Completes the opening: so far only `start` is known. Writes nothing to PM. Throws
  /// Errc::corrupt if a segment of [start, tail) is missing.
  void open(Position tail);

  Position start() const noexcept { return start_.load(std::memory_order_acquire); }
  Position end() const noexcept { return end_.load(std::memory_order_acquire); }

  /// Segments in use or allocated ahead.
  std::uint64_t count() const noexcept {
    const Position begin = start();  // before the end, so that it is not behind it
    return (end() - begin) / kSegmentSize;
  }

  /// The record at a position, nullptr if it has no segment. Its content may be anything.
  Record* at(Position position) const noexcept {
    const pm::Offset segment = pm::load(layout_.segments[slot_of(position)]);
    if (!possible(segment)) return nullptr;
    return pool_.at<Record>(segment + written_at(position));
  }

  /// The content of a record if it is valid.
  std::optional<Content> read(std::uint64_t seed, Position position) const noexcept {
    const Record* record = at(position);
    return record != nullptr ? read_record(*record, seed, position) : std::nullopt;
  }

  /// Bytes behind a position that lies before the end.
  std::uint64_t room_behind(Position position) const noexcept { return end() - position; }

  /// Adds segments until `enough()`; false if it isn't enough and `may_grow()` says no, or the ring
  /// is full. Throws Errc::out_of_space.
  template <class Enough, class MayGrow>
  bool grow(Enough enough, MayGrow may_grow) {
    const std::lock_guard guard(space_lock_);
    while (!enough()) {
      if (ring_is_full() || !may_grow()) return false;
      add();
    }
    return true;
  }

  /// Frees segments at the end. `shrink(set_end)` calls set_end(position) with the new end, a
  /// segment's begin, or not at all, while no thread can append.
  template <class Shrink>
  void free_ahead(Shrink shrink) {
    const std::lock_guard guard(space_lock_);
    const Position before = end();
    shrink([this](Position end) { end_.store(end, std::memory_order_release); });
    // From the end on, so that those that a crash leaves follow the tail without a gap.
    for (Position position = before; position > end(); position -= kSegmentSize)
      free_word(position - kSegmentSize);
  }

  /// Frees the segments below `keep`: no reader needs records before it any more, not even after a
  /// crash. Also frees segments that a crash left from the last time.
  void free_before(Position keep);

  /// Calls visit(offset) for the block of each ring word, live or not.
  template <class F>
  void for_each_block(F visit) const {
    for (const pm::Offset& word : layout_.segments) {
      if (const pm::Offset block = pm::load(word); block != pm::kNull) visit(block);
    }
  }

  /// Whether a ring word that is not 0 belongs to no segment of [freed, end): W3.
  bool has_stray_words() const noexcept;

 private:
  bool possible(pm::Offset segment) const noexcept {
    return segment % pm::kLineSize == 0 && pool_.contains(segment, kSegmentSize);
  }
  bool has_word(Position position) const noexcept {
    return pm::load(layout_.segments[slot_of(position)]) != pm::kNull;
  }
  bool ring_is_full() const noexcept { return end() - freed_ >= kRingSize; }
  void add();
  void free_word(Position position);

  pool::PoolCore& pool_;
  StripeLayout& layout_;
  const unsigned stripe_;
  std::mutex space_lock_;        // guards the changes of all that follows, and of the layout
  std::atomic<Position> start_;  // as in PM
  std::atomic<Position> end_;    // the ring words of [start, end) are never 0
  Position freed_;
};

}  // namespace perdix::detail::wal
