// A lane: the state with which one operation at a time allocates and frees without touching shared
// memory.
//
// In PM a lane has the recyclable log record and the reclaimed ring (layout.h). In DRAM it has, for
// each size class, the span that it allocates from and the blocks of the ring, and a queue of freed
// blocks that readers may still see. It belongs to no thread: the holder of `lock` uses it, so
// nothing is lost when a thread ends.
//
// A ring slot is in one of these states; only `used` slots are not 0 in PM:
//   unused -> (Session::free) -> claimed -> (finish) -> waiting for readers -> ready -> (reserve)
//   -> taken -> (finish) -> unused
#pragma once

#include <array>
#include <cstdint>

#include "alloc/heap.h"
#include "alloc/limbo.h"
#include "alloc/marks.h"
#include "alloc/record.h"
#include "alloc/span_cursor.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::alloc {

/// The operation that the holder of a lane is making, as its Session has filled it so far.
struct Operation {
  Record record;
  std::array<Block, kMaxBlocks> reserved;  // element i belongs to record.reserved[i]
  std::array<Block, kMaxBlocks> freed;     // element i belongs to record.freed[i]
  bool logged = false;                     // the record is in PM
};

class alignas(util::kCacheLine) Lane {
 public:
  Lane(Heap& heap, const Marks& marks, const pm::Persister& pm, epoch::Reclaimer& reclaimer,
       LaneLayout& layout, unsigned node);

  util::SpinLock& lock() noexcept { return lock_; }
  LaneLayout& layout() noexcept { return layout_; }
  unsigned node() const noexcept { return node_; }

  /// Takes a free block of a class without looking beyond the lane: from the ring, else from the
  /// current span. Returns false if neither has one.
  bool take(unsigned size_class, Block& block) noexcept;

  /// As take(), from a span that the caller has just acquired and that becomes the current one of
  /// its class. There must be no current span of the class, and the new one must have a free block.
  void take_from(Span& span, unsigned size_class, Block& block) noexcept;

  /// Undoes take().
  void put_back(const Block& block) noexcept;

  /// Makes sure that what one operation frees can be remembered. May throw std::bad_alloc.
  void make_room() { limbo_.reserve(kMaxBlocks); }

  /// Takes an unused ring slot; kNoSlot if there is none.
  Slot claim_slot() noexcept { return unused_count_ == 0 ? kNoSlot : unused_[--unused_count_]; }

  /// Makes a slot unused again. It is 0 in PM.
  void unclaim_slot(Slot slot) noexcept { unused_[unused_count_++] = slot; }

  /// Lets a block, run or large object wait until no reader can see it. It is free in PM: by its
  /// ring slot, or by its mark if `slot` is kNoSlot. make_room() was called before.
  void freed(Offset offset, Slot slot);

  /// Like freed(), for a block that no reader can see: makes it available immediately.
  void freed_unread(Offset offset, Slot slot);

  /// Makes up to `count` freed blocks available again whose readers are gone. Returns how many.
  std::size_t settle(std::size_t count);

  /// Lets the grace period of all blocks freed so far begin now, unless it has begun already.
  /// Returns whether there is a freed block that is not available yet.
  bool seal() {
    limbo_.seal(reclaimer_);
    return !limbo_.empty();
  }

  /// Gives everything that the lane keeps for later use back to the heap: the spans that it owns,
  /// and the blocks of its ring.
  void surrender();

  /// The running operation.
  Operation operation;

 private:
  void make_available(Offset offset, Slot slot);
  void push_ready(Slot slot);
  void surrender_spans() noexcept;
  void surrender_ring();
  void give_back(Offset offset);

  util::SpinLock lock_;
  unsigned node_;
  unsigned unused_count_ = 0;
  Heap& heap_;
  const Marks& marks_;
  const pm::Persister& pm_;
  epoch::Reclaimer& reclaimer_;
  LaneLayout& layout_;

  std::array<SpanCursor, kClasses> current_{};
  std::array<Slot, kClasses> ready_{};             // by class: its first ready slot
  std::array<Slot, LaneLayout::kSlots> next_{};    // by slot: the next ready one of its class
  std::array<Slot, LaneLayout::kSlots> unused_{};  // a stack, so that few lines of the ring are hot
  std::array<Offset, LaneLayout::kSlots> block_{};  // by slot: its block, from freed() on
  Limbo limbo_;
};

}  // namespace perdix::detail::alloc
