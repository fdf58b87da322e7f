// The write buffers of an index: as many as a DRAM budget allows, handed out to the nodes that are
// written to, and taken back from those that are not.
//
// Buffers have numbers from 1 on, which are all that a middle node keeps of its buffer. Their
// memory stays in place until the pool of buffers goes away (wal::Chain relies on it).
//
// Which nodes have one: whoever asks while there are some left; then CLOCK. A hand goes round,
// takes the mark from buffers that were written to since it last came by, and offers the others.
//
// Thread-safe. A buffer in use belongs to the holder of its node's lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "index/sptree/write_buffer.h"
#include "util/arena.h"

namespace perdix::index::sptree {

template <class Node>
class BufferPool {
 public:
  using Buffer = WriteBuffer<Node>;
  using Number = std::uint32_t;  ///< 0: none

  /// on_new(buffer) is called for each that becomes part of the pool; it is unused then.
  BufferPool(util::Arena& arena, std::function<void(Buffer&)> on_new)
      : arena_(&arena), on_new_(std::move(on_new)) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    for (Number first = 0; first < made_; first += kSlab) {
      Buffer* slab = slab_of(first);
      std::destroy_n(slab, kSlab);
      arena_->release(slab, kSlab * sizeof(Buffer));
    }
  }

  /// How many buffers may be in use, in bytes of DRAM.
  void set_budget(std::uint64_t bytes) {
    budget_ = static_cast<Number>(std::min<std::uint64_t>(bytes / sizeof(Buffer), kMost));
  }
  Number budget() const { return budget_; }
  Number in_use() const { return in_use_.load(std::memory_order_relaxed); }

  Buffer& at(Number number) const { return slab_of(number - 1)[(number - 1) % kSlab]; }

  /// A buffer that nobody has; 0 if the budget is used up. Throws bad_alloc.
  Number acquire() {
    if (in_use() >= budget_) return 0;
    return acquire_beyond_budget();
  }

  /// The same for changes that exist already, after a restart.
  Number acquire_beyond_budget() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) make_slab();
    const Number number = free_.back();
    free_.pop_back();
    in_use_.fetch_add(1, std::memory_order_relaxed);
    return number;
  }

  void release(Number number) {
    const std::lock_guard lock(mutex_);
    free_.push_back(number);
    in_use_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// A buffer in use that was not written to since the hand last came by; 0 if there is none within
  /// a few steps. Its owner may change at any time.
  Number cold() {
    constexpr unsigned kSteps = 4;
    const Number made = made_.load(std::memory_order_acquire);
    for (unsigned i = 0; i < kSteps && made != 0; ++i) {
      const Number number = hand_.fetch_add(1, std::memory_order_relaxed) % made + 1;
      Buffer& buffer = at(number);
      if (buffer.node.load(std::memory_order_acquire) == nullptr) continue;
      if (!buffer.hot.exchange(false, std::memory_order_relaxed)) return number;
    }
    return 0;
  }

 private:
  static constexpr Number kSlab = 256;
  static constexpr Number kSlabs = 1 << 14;
  static constexpr Number kMost = kSlab * kSlabs - 1;

  Buffer* slab_of(Number index) const {
    return (*slabs_)[index / kSlab].load(std::memory_order_acquire);
  }

  void make_slab() {
    if (slabs_ == nullptr) slabs_ = std::make_unique<Slabs>();
    const Number made = made_.load(std::memory_order_relaxed);
    if (made / kSlab >= kSlabs) throw std::bad_alloc();
    free_.reserve(made + kSlab);
    auto* slab = static_cast<Buffer*>(arena_->allocate(kSlab * sizeof(Buffer)));
    std::uninitialized_default_construct_n(slab, kSlab);
    (*slabs_)[made / kSlab].store(slab, std::memory_order_release);
    for (Number i = kSlab; i > 0; --i) {
      on_new_(slab[i - 1]);
      free_.push_back(made + i);
    }
    made_.store(made + kSlab, std::memory_order_release);
  }

  using Slabs = std::array<std::atomic<Buffer*>, kSlabs>;

  util::Arena* arena_;
  std::function<void(Buffer&)> on_new_;
  Number budget_ = 0;
  std::atomic<Number> in_use_{0};
  std::atomic<Number> made_{0};
  std::atomic<Number> hand_{0};
  std::unique_ptr<Slabs> slabs_;  // made before the first number is handed out
  std::mutex mutex_;              // guards what follows
  std::vector<Number> free_;
};

}  // namespace perdix::index::sptree
