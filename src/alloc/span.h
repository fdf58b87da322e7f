// A span of blocks, in DRAM: which of them are taken.
//
// A block is taken if its bit in PM is set, if a lane holds it for allocation, or if it was freed
// and readers may still see it. So `taken` covers the bitmap in PM, and blocks that are not taken
// are free in PM.
//
// Invariants:
//   1. Only the lane that owns a span claims blocks of it. Any thread may release blocks.
//   2. A block's bit is cleared before `available` counts it, so `available` is at most the number
//      of clear bits.
//   3. Span objects are never destroyed before the heap, only used again for another span: a thread
//      that has released the last block of a span may still read `place`, and then decides under
//      the heap's lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "alloc/size_class.h"

namespace perdix::detail::alloc {

struct Span {
  enum class Place : std::uint8_t {
    full,     ///< on no list; when a block is released it goes on one
    partial,  ///< on the heap's list of spans with free blocks
    empty,    ///< on the heap's list of spans without taken blocks
    owned,    ///< a lane allocates from it
  };

  Offset offset = pm::kNull;
  std::uint16_t size_class = 0;
  std::uint16_t node = 0;
  std::atomic<Place> place{Place::full};
  std::atomic<std::int32_t> available{0};  ///< blocks that can be claimed; below 0 for moments
  Span* previous = nullptr;                ///< on a list; under the heap's lock
  Span* next = nullptr;

  const SizeClass& geometry() const noexcept { return kSizeClasses[size_class]; }

  /// The bits, which follow the object in memory: geometry().words of them.
  std::atomic<std::uint64_t>* taken() noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
  }

  Offset block(std::uint32_t index) const noexcept {
    return offset + geometry().data + std::uint64_t{index} * geometry().size;
  }

  /// Takes all free blocks of bitmap word `word`; they are the caller's. Only for the owner.
  std::uint64_t claim(std::uint32_t word) noexcept {
    if (taken()[word].load(std::memory_order_relaxed) == ~std::uint64_t{0}) return 0;
    // acquire: pairs with the release below, the previous user of the block is done with it.
    const std::uint64_t claimed =
        ~taken()[word].exchange(~std::uint64_t{0}, std::memory_order_acquire);
    available.fetch_sub(std::popcount(claimed), std::memory_order_relaxed);
    return claimed;
  }

  bool is_taken(std::uint32_t index) noexcept {
    return taken()[index / 64].load(std::memory_order_relaxed) >> (index % 64) & 1;
  }

  /// Gives blocks back; those that are not taken are left alone. Returns how many are available
  /// now. The caller must not use the span afterwards, but for `place`.
  std::int32_t release(std::uint32_t word, std::uint64_t blocks) noexcept {
    const std::uint64_t before = taken()[word].fetch_and(~blocks, std::memory_order_release);
    const std::int32_t released = std::popcount(before & blocks);
    // seq_cst, as are the stores and loads of `place`: either this thread sees that the owner has
    // left the span, or the owner sees the block.
    return available.fetch_add(released, std::memory_order_seq_cst) + released;
  }
};
static_assert(sizeof(Span) % alignof(std::atomic<std::uint64_t>) == 0);

/// A list of spans, linked through them. Under the heap's lock.
class SpanList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  Span* first() const noexcept { return first_; }

  void push(Span& span) noexcept {
    span.previous = nullptr;
    span.next = first_;
    if (first_ != nullptr) first_->previous = &span;
    first_ = &span;
  }

  void remove(Span& span) noexcept {
    (span.previous != nullptr ? span.previous->next : first_) = span.next;
    if (span.next != nullptr) span.next->previous = span.previous;
  }

  Span* pop() noexcept {
    Span* span = first_;
    if (span != nullptr) remove(*span);
    return span;
  }

 private:
  Span* first_ = nullptr;
};

}  // namespace perdix::detail::alloc
