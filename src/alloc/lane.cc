#include "alloc/lane.h"

#include <cassert>

namespace perdix::detail::alloc {
namespace {

// Entries of the limbo: an offset and a ring slot, kNoSlot for blocks whose bit was cleared and for
// large objects.
constexpr std::uint64_t pack(Offset offset, Slot slot) noexcept {
  return offset | std::uint64_t{slot} << kOffsetBits;
}
constexpr Slot slot_of(std::uint64_t entry) noexcept {
  return static_cast<Slot>(entry >> kOffsetBits);
}

std::uint32_t index_in(const Span& span, Offset block) noexcept {
  return block_index(span.geometry(), position_in_span(block));
}

}  // namespace

Lane::Lane(Heap& heap, const Marks& marks, const pm::Persister& pm, epoch::Reclaimer& reclaimer,
           LaneLayout& layout, unsigned node)
    : node_(node), heap_(heap), marks_(marks), pm_(pm), reclaimer_(reclaimer), layout_(layout) {
  ready_.fill(kNoSlot);
  for (unsigned i = LaneLayout::kSlots; i > 0; --i) unclaim_slot(static_cast<Slot>(i - 1));
}

bool Lane::take(unsigned size_class, Block& block) noexcept {
  if (const Slot slot = ready_[size_class]; slot != kNoSlot) {
    ready_[size_class] = next_[slot];
    block = {block_[slot], nullptr, 0, slot};
    return true;
  }
  if (!current_[size_class].take(heap_, block)) return false;
  marks_.prefetch(block.span->offset, block.index);
  return true;
}

void Lane::take_from(Span& span, unsigned size_class, Block& block) noexcept {
  current_[size_class].begin(span);
  [[maybe_unused]] const bool taken = take(size_class, block);
  assert(taken);
}

void Lane::put_back(const Block& block) noexcept {
  if (block.slot != kNoSlot) return push_ready(block.slot);
  if (current_[block.span->size_class].put_back(block)) return;
  heap_.give_back(*block.span, block.index / 64, std::uint64_t{1} << (block.index % 64));
}

void Lane::freed(Offset offset, Slot slot) {
  if (slot != kNoSlot) block_[slot] = offset;
  limbo_.push(pack(offset, slot), reclaimer_);
}

void Lane::freed_unread(Offset offset, Slot slot) {
  if (slot != kNoSlot) block_[slot] = offset;
  make_available(offset, slot);
}

std::size_t Lane::settle(std::size_t count) {
  std::size_t settled = 0;
  std::uint64_t entry = 0;
  while (settled < count && limbo_.pop(entry, reclaimer_)) {
    pm::on_reclaimed(heap_.address(entry & kOffsetMask));
    make_available(entry & kOffsetMask, slot_of(entry));
    ++settled;
  }
  return settled;
}

void Lane::make_available(Offset offset, Slot slot) {
  if (is_large(offset)) return heap_.give_back_chunks(offset);
  if (is_run(offset)) return heap_.give_back_run(offset);
  if (slot != kNoSlot) return push_ready(slot);
  give_back(offset);
}

void Lane::push_ready(Slot slot) {
  Slot& first = ready_[heap_.span_at(block_[slot]).size_class];
  next_[slot] = first;
  first = slot;
}

void Lane::surrender() {
  surrender_ring();
  surrender_spans();
}

void Lane::surrender_spans() noexcept {
  for (SpanCursor& current : current_) current.surrender(heap_);
}

/// Gives the blocks of ready slots to the heap: they become free by their bits, not by the slots.
void Lane::surrender_ring() {
  std::array<Slot, LaneLayout::kSlots> slots;
  unsigned count = 0;
  for (Slot& first : ready_) {
    for (; first != kNoSlot; first = next_[first]) slots[count++] = first;
  }
  if (count == 0) return;
  for (unsigned i = 0; i < count; ++i) {
    const Span& span = heap_.span_at(block_[slots[i]]);
    marks_.free(span.offset, index_in(span, block_[slots[i]]));
  }
  // A bit must be clear before the slot that also says that the block is free is emptied.
  pm_.fence();
  for (unsigned i = 0; i < count; ++i) marks_.write_slot(layout_.ring[slots[i]], 0);
  // A slot must be empty before the block is allocated.
  pm_.fence();
  for (unsigned i = 0; i < count; ++i) {
    give_back(block_[slots[i]]);
    unclaim_slot(slots[i]);
  }
}

void Lane::give_back(Offset offset) {
  Span& span = heap_.span_at(offset);
  const std::uint32_t index = index_in(span, offset);
  heap_.give_back(span, index / 64, std::uint64_t{1} << (index % 64));
}

}  // namespace perdix::detail::alloc
