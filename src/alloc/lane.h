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
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::alloc {

using Slot = std::uint16_t;
inline constexpr Slot kNoSlot = 0xffff;

/// A small block in the hands of an operation.
struct Block {
  Offset offset = pm::kNull;
  Span* span = nullptr;     ///< null if it came from a ring slot
  std::uint32_t index = 0;  ///< in the span
  Slot slot = kNoSlot;      ///< where it came from, or goes to
  bool unread = false;      ///< of one that is freed: no reader can see it
};

/// The operation of the holder of a lane.
struct Operation {
  Record record;
  std::array<Block, kMaxBlocks> reserved;  // small ones of record.reserved, in their places
  std::array<Block, kMaxBlocks> freed;     // small ones of record.freed, in their places
  bool logged = false;
};

class alignas(util::kCacheLine) Lane {
 public:
  Lane(Heap& heap, const Marks& marks, const pm::Persister& pm, epoch::Reclaimer& reclaimer,
       LaneLayout& layout, unsigned node);

  util::SpinLock& lock() noexcept { return lock_; }
  LaneLayout& layout() noexcept { return layout_; }
  unsigned node() const noexcept { return node_; }

  /// Takes a free block of a class without looking beyond the lane: from the ring, else from the
  /// current span. False if there is none.
  bool take(unsigned size_class, Block& block) noexcept;

  /// As take(), from a new current span, which the caller acquired.
  void take_from(Span& span, unsigned size_class, Block& block) noexcept;

  /// Undoes take().
  void put_back(const Block& block) noexcept;

  /// Makes sure that what one operation frees can be remembered. May throw std::bad_alloc.
  void make_room() { limbo_.reserve(kMaxBlocks); }

  /// An unused ring slot, or kNoSlot if the ring is full.
  Slot claim_slot() noexcept { return unused_count_ == 0 ? kNoSlot : unused_[--unused_count_]; }

  /// The slot is unused: 0 in PM.
  void unclaim_slot(Slot slot) noexcept { unused_[unused_count_++] = slot; }

  /// A block, run or large object is free in PM: by its ring slot if one is given. make_room() was
  /// called.
  void freed(Offset offset, Slot slot);

  /// The same for a block that no reader can see: it is available immediately.
  void freed_unread(Offset offset, Slot slot);

  /// Makes up to `count` freed blocks available again whose readers are gone. Returns how many.
  std::size_t settle(std::size_t count);

  /// The grace period of the freed blocks begins now at the latest. Returns whether there is any
  /// such block that has not been made available.
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
  struct Current {
    Span* span = nullptr;
    std::uint32_t word = 0;
    std::uint64_t blocks = 0;  // of bitmap word `word`, claimed and not taken
  };

  bool advance(Current& current) noexcept;
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

  std::array<Current, kClasses> current_{};
  std::array<Slot, kClasses> ready_{};             // first ready slot of the class
  std::array<Slot, LaneLayout::kSlots> next_{};    // the next one of the class
  std::array<Slot, LaneLayout::kSlots> unused_{};  // a stack, so that few lines of the ring are hot
  std::array<Offset, LaneLayout::kSlots> block_{};  // what the slot holds, from freed() on
  Limbo limbo_;
};

}  // namespace perdix::detail::alloc
