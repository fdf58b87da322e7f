#include "alloc/span_cursor.h"

#include <bit>

namespace perdix::detail::alloc {

bool SpanCursor::take(Heap& heap, Block& block) noexcept {
  if (blocks_ == 0 && !advance(heap)) return false;
  const std::uint32_t index = word_ * 64 + static_cast<std::uint32_t>(std::countr_zero(blocks_));
  blocks_ &= blocks_ - 1;
  block = {span_->block(index), span_, index, kNoSlot};
  return true;
}

/// Claims the next blocks of the span. Gives the span up and returns false when it has no more.
bool SpanCursor::advance(Heap& heap) noexcept {
  if (span_ == nullptr) return false;
  const std::uint32_t words = span_->geometry().words;
  // Once around: words that were used up may have got free blocks since.
  for (std::uint32_t i = 0; i < words && span_->available.load(std::memory_order_relaxed) > 0;
       ++i) {
    word_ = word_ + 1 < words ? word_ + 1 : 0;
    blocks_ = span_->claim(word_);
    if (blocks_ != 0) return true;
  }
  heap.release(*span_);
  span_ = nullptr;
  return false;
}

bool SpanCursor::put_back(const Block& block) noexcept {
  if (span_ != block.span || word_ != block.index / 64) return false;
  blocks_ |= std::uint64_t{1} << (block.index % 64);
  return true;
}

void SpanCursor::surrender(Heap& heap) noexcept {
  if (span_ == nullptr) return;
  if (blocks_ != 0) heap.give_back(*span_, word_, blocks_);
  heap.release(*span_);
  *this = {};
}

}  // namespace perdix::detail::alloc
