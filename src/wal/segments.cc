#include "wal/segments.h"

#include <algorithm>

#include <fmt/format.h>

#include "wal/owned_block.h"

namespace perdix::detail::wal {
namespace {

/// More than a log can ever reach, and less than what overflows when something is added.
constexpr Position kLastStart = std::uint64_t{1} << 62;

}  // namespace

Segments::Segments(pool::PoolCore& pool, StripeLayout& layout, unsigned stripe)
    : pool_(pool),
      layout_(layout),
      stripe_(stripe),
      start_(pm::load(layout.start)),
      end_(start()),
      freed_(start()) {
  if (start() % kSegmentSize != stripe || start() < first_position(stripe) ||
      start() > kLastStart) {
    throw_corrupt(pool, fmt::format("stripe {} begins at {:#x}", stripe, start()));
  }
  for_each_block([&](pm::Offset block) {
    if (!possible(block) || !pool.allocator().validate_block(block, kSegmentSize)) {
      throw_corrupt(pool, fmt::format("stripe {} has no segment at {:#x}", stripe, block));
    }
  });
}

void Segments::open(Position tail) {
  Position end = start();
  for (; end < tail; end += kSegmentSize) {
    if (!has_word(end)) {
      throw_corrupt(pool_, fmt::format("stripe {} misses its segment at {:#x}", stripe_, end));
    }
  }
  // `end` is the first segment that begins at or behind the tail. Others were allocated ahead.
  const Position last = start() + kRingSize;
  while (end < last && has_word(end)) end += kSegmentSize;
  // Segments that a reclamation has not freed, unless they were reused ahead of the tail: they are
  // freed later then.
  Position freed = start();
  while (freed > first_position(stripe_) && has_word(freed - kSegmentSize) &&
         end - freed < kRingSize) {
    freed -= kSegmentSize;
  }
  freed_ = freed;
  end_.store(end, std::memory_order_release);
}

void Segments::add() {
  const Position position = end();
  allocate_into(pool_, layout_.segments[slot_of(position)], kSegmentSize);
  // release: a thread that sees the new end sees its ring word.
  end_.store(position + kSegmentSize, std::memory_order_release);
}

void Segments::free_before(Position keep) {
  const std::lock_guard guard(space_lock_);
  const Position begin = segment_begin(keep);
  if (begin > start()) {
    // Durable before a segment is freed: recovery takes a missing segment behind the start for
    // damage. Flushed only: free_from() fences, in log(), before it takes the segment away.
    pool_.pm().store(layout_.start, begin);
    pool_.pm().flush(&layout_.start, sizeof begin);
    start_.store(begin, std::memory_order_release);
  }
  for (; freed_ < start(); freed_ += kSegmentSize) {
    free_word(freed_);
  }
}

void Segments::free_word(Position position) {
  free_from(pool_, layout_.segments[slot_of(position)]);
}

bool Segments::has_stray_words() const noexcept {
  std::uint64_t words = 0, expected = 0;
  for_each_block([&](pm::Offset) { ++words; });
  for (Position position = freed_; position < end(); position += kSegmentSize) {
    expected += has_word(position) ? 1 : 0;
  }
  return words != expected;
}

}  // namespace perdix::detail::wal
