#include "alloc/claim.h"

#include <algorithm>
#include <cassert>

#include <perdix/error.h>

#include "alloc/calloc.h"

namespace perdix::detail::alloc {
namespace {

[[noreturn]] void throw_used_up() {
  throw Error(Errc::out_of_space,
              "the pool is full, and so is what it keeps for one of its indexes; erase something, "
              "or open the pool with a larger max_size");
}

}  // namespace

void Claim::raise(std::uint64_t spans) {
  allocator_.claim(spans);
  spans_.fetch_add(spans, std::memory_order_relaxed);
}

void Claim::lower(std::uint64_t spans) noexcept {
  const std::lock_guard lock(mutex_);
  spans = std::min(spans, this->spans());
  spans_.fetch_sub(spans, std::memory_order_relaxed);
  allocator_.heap_.unclaim(spans);
}

void Claim::surrender() noexcept {
  const std::lock_guard lock(mutex_);
  for (SpanCursor& cursor : cursors_) cursor.surrender(allocator_.heap_);
}

void Claim::require(std::uint64_t spans) const {
  if (this->spans() < spans) throw_used_up();
}

/// Takes a block of at least `bytes`. Throws out_of_space.
BlockRef Claim::take(std::uint64_t bytes, Block& block) {
  const std::lock_guard lock(mutex_);
  if (bytes > kLargestClass) return take_run(bytes, block);
  Heap& heap = allocator_.heap_;
  const unsigned size_class = size_class_of(bytes);
  SpanCursor& cursor = cursors_[size_class];
  if (!cursor.take(heap, block)) {
    require(1);
    Span* const span = heap.acquire(size_class, 0, Effort::claimed);
    if (span == nullptr) throw_used_up();
    spans_.fetch_sub(1, std::memory_order_relaxed);
    cursor.begin(*span);
    [[maybe_unused]] const bool taken = cursor.take(heap, block);
    assert(taken);
  }
  return {block.offset, 0};
}

BlockRef Claim::take_run(std::uint64_t bytes, Block& block) {
  const std::uint64_t spans = (bytes + kSpanSize - 1) / kSpanSize;
  require(spans);
  if (spans > kMaxRun) throw_used_up();
  const auto count = static_cast<std::uint16_t>(spans);
  block = {allocator_.heap_.take_run(count, 0, Effort::claimed), nullptr, 0, kNoSlot};
  if (block.offset == pm::kNull) throw_used_up();
  spans_.fetch_sub(spans, std::memory_order_relaxed);
  return {block.offset, count};
}

}  // namespace perdix::detail::alloc
