// The free blocks of one span after another, for a lane or a claim that owns these spans. Not
// thread-safe.
#pragma once

#include <cassert>
#include <cstdint>

#include "alloc/heap.h"

namespace perdix::detail::alloc {

using Slot = std::uint16_t;
inline constexpr Slot kNoSlot = 0xffff;

/// A block that an operation has reserved or is going to free. `span` to `slot` are for small
/// blocks.
struct Block {
  Offset offset = pm::kNull;
  Span* span = nullptr;     ///< null if it came from a ring slot
  std::uint32_t index = 0;  ///< in the span
  Slot slot = kNoSlot;      ///< of the ring: where a reserved block came from, or a freed one goes
  bool unread = false;      ///< of a freed block: no reader can see it
};

class SpanCursor {
 public:
  /// Takes a free block of the span. Returns false if there is no span, or if it has no free block;
  /// then the heap has it back.
  bool take(Heap& heap, Block& block) noexcept;

  /// Goes on with a span that the caller has just acquired and that has a free block. There must be
  /// no span yet.
  void begin(Span& span) noexcept {
    assert(span_ == nullptr && blocks_ == 0);
    span_ = &span;
    word_ = span.geometry().words - 1;
  }

  /// Undoes take(). Returns false if the block is not among those that the cursor hands out now;
  /// then the heap has to get it.
  bool put_back(const Block& block) noexcept;

  /// Gives the span back to the heap.
  void surrender(Heap& heap) noexcept;

 private:
  bool advance(Heap& heap) noexcept;

  Span* span_ = nullptr;
  std::uint32_t word_ = 0;
  std::uint64_t blocks_ = 0;  // of bitmap word `word_`, claimed and not taken
};

}  // namespace perdix::detail::alloc
