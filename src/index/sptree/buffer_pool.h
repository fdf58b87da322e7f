// The write buffers of an index: as many as a DRAM budget allows, handed out to the nodes that are
// written to, and taken back from those that are not.
//
// Buffers have numbers from 1 on, which are all that a middle node keeps of its buffer. Their
// memory stays in place until the pool of buffers goes away (wal::Chain relies on it).
//
// Which nodes have one: whoever asks while there are some left; then CLOCK. A hand goes round,
// takes the mark from buffers that were written to since it last came by, and offers the others.
//
// Whoever asks may prefer a number. So a node can have a buffer whose place is known before the
// node has been read, and a write waits for the lines of both at once.
//
// The first touch of a large slab takes milliseconds, and whoever needs one holds a node's lock. So
// once half of the newest one is taken, a thread makes the next one ready.
//
// Thread-safe. A buffer in use belongs to the holder of its node's lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "index/sptree/mnode.h"
#include "index/sptree/write_buffer.h"
#include "util/arena.h"
#include "util/signals.h"

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
    drop_ready();
    for (Number first = 0; first < end_; first += slab_) {
      if (Buffer* slab = slab_of(first)) delete_slab(slab);
    }
  }

  /// How many buffers may be in use, in bytes of DRAM. Before the first use.
  void set_budget(std::uint64_t bytes) {
    if (slabs_ == nullptr) slabs_ = std::make_unique<Slabs>();
    budget_ = static_cast<Number>(std::min<std::uint64_t>(bytes / sizeof(Buffer), kMost));
    slab_ = budget_ < 8 * kLargeSlab ? kSmallSlab : kLargeSlab;
  }
  Number budget() const { return budget_; }
  Number in_use() const { return in_use_.load(std::memory_order_relaxed); }

  Buffer& at(Number number) const { return slab_of(number - 1)[(number - 1) % slab_]; }

  /// Asks for the line that a change of this buffer needs, if there is one. Any number but 0, up
  /// to the budget.
  void prefetch(Number number) const {
    if (const Buffer* slab = slab_of(number - 1)) slab[(number - 1) % slab_].prefetch_for_change();
  }

  /// A buffer that nobody has, if possible the preferred one, which is at most the budget; 0 if the
  /// budget is used up. Throws bad_alloc.
  Number acquire(Number preferred) {
    if (in_use() >= budget_) return 0;
    return acquire_beyond_budget(preferred);
  }

  /// The same for changes that exist already, after a restart.
  Number acquire_beyond_budget(Number preferred) {
    const std::lock_guard lock(mutex_);
    const Number number = is_free(preferred) ? preferred : next_free();
    taken_[number] = true;
    const Number before = in_use_.fetch_add(1, std::memory_order_relaxed);
    if (slab_ == kLargeSlab && before % slab_ == slab_ / 2) make_ready(before);
    return number;
  }

  void release(Number number) {
    const std::lock_guard lock(mutex_);
    taken_[number] = false;
    list(number);
    in_use_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// Calls visit(buffer) for those that are in use, and some that are not.
  template <class F>
  void for_each_used(F visit) const {
    const Number end = end_.load(std::memory_order_acquire);
    for (Number number = 1; number <= end; ++number) {
      if (slab_of(number - 1) == nullptr) continue;
      Buffer& buffer = at(number);
      if (buffer.node.load(std::memory_order_acquire) != nullptr) visit(buffer);
    }
  }

  /// A buffer in use that was not written to since the hand last came by; 0 if there is none within
  /// a few steps. Its owner may change at any time.
  Number cold() {
    constexpr unsigned kSteps = 4;
    const Number end = end_.load(std::memory_order_acquire);
    for (unsigned i = 0; i < kSteps && end != 0; ++i) {
      const Number number = hand_.fetch_add(1, std::memory_order_relaxed) % end + 1;
      if (slab_of(number - 1) == nullptr) continue;
      Buffer& buffer = at(number);
      if (buffer.node.load(std::memory_order_acquire) == nullptr) continue;
      if (!buffer.hot.exchange(false, std::memory_order_relaxed)) return number;
    }
    return 0;
  }

 private:
  // Buffers in a slab. Large ones are for huge pages, which the arena maps from 2 MiB on, and for
  // budgets that they exceed by an eighth at most.
  static constexpr Number kSmallSlab = 256;
  static constexpr Number kLargeSlab = (4 << 20) / sizeof(Buffer);
  static constexpr Number kSlabs = 1 << 14;
  // So that all numbers of its slab fit in a node.
  static constexpr Number kMost = (1 << LeafAndBuffer::kBufferBits) - 1 - kLargeSlab;
  static_assert(kMost / kSmallSlab < kSlabs);

  Buffer* slab_of(Number index) const {
    return (*slabs_)[index / slab_].load(std::memory_order_acquire);
  }

  // Under mutex_, as all that follow.
  bool is_free(Number number) {
    if (number == 0) return false;
    if (slab_of(number - 1) == nullptr) make_slab((number - 1) / slab_);
    return !taken_[number];
  }

  Number next_free() {
    for (;;) {
      if (free_.empty()) make_slab(first_without_slab());
      const Number number = free_.back();
      free_.pop_back();
      listed_[number] = false;
      if (!taken_[number]) return number;  // else somebody preferred it
    }
  }

  void list(Number number) {
    if (!listed_[number]) free_.push_back(number);  // make_slab() has reserved a place
    listed_[number] = true;
  }

  Number first_without_slab() const {
    Number index = 0;
    while (index < kSlabs && slab_of(index * slab_) != nullptr) ++index;
    return index;
  }

  void make_slab(Number index) {
    if (index > kMost / slab_) throw std::bad_alloc();
    const Number first = index * slab_;
    const Number end = std::max(first + slab_, end_.load(std::memory_order_relaxed));
    if (free_.capacity() < end) free_.reserve(std::size_t{2} * end);
    taken_.resize(end + 1);
    listed_.resize(end + 1);
    Buffer* slab = ready_.valid() ? ready_.get() : new_slab();
    for (Number i = slab_; i > 0; --i) {
      on_new_(slab[i - 1]);
      list(first + i);
    }
    (*slabs_)[index].store(slab, std::memory_order_release);
    end_.store(end, std::memory_order_release);
  }

  /// Begins to make a slab ready, unless that was done or the rest of the budget has no use for it.
  void make_ready(Number in_use) {
    if (ready_.valid() || in_use + slab_ > budget_) return;
    try {
      ready_ = std::async(std::launch::async, [this] {
        util::block_signals();
        return new_slab();
      });
    } catch (const std::system_error&) {
      // There are too many threads: whoever needs the slab makes it.
    }
  }

  Buffer* new_slab() const {
    auto* slab = static_cast<Buffer*>(arena_->allocate(slab_ * sizeof(Buffer)));
    std::uninitialized_default_construct_n(slab, slab_);
    return slab;
  }

  void drop_ready() {
    if (!ready_.valid()) return;
    try {
      delete_slab(ready_.get());
    } catch (const std::bad_alloc&) {
      // It was never made.
    }
  }

  void delete_slab(Buffer* slab) {
    std::destroy_n(slab, slab_);
    arena_->release(slab, slab_ * sizeof(Buffer));
  }

  using Slabs = std::array<std::atomic<Buffer*>, kSlabs>;

  util::Arena* arena_;
  std::function<void(Buffer&)> on_new_;
  Number budget_ = 0;
  Number slab_ = kSmallSlab;  // buffers in each; constant since set_budget()
  std::atomic<Number> in_use_{0};
  std::atomic<Number> end_{0};  // the greatest number of a slab
  std::atomic<Number> hand_{0};
  std::unique_ptr<Slabs> slabs_;  // constant since set_budget()
  std::mutex mutex_;              // guards what follows
  std::future<Buffer*> ready_;    // a slab that has no place yet
  std::vector<bool> taken_;       // by number
  std::vector<bool> listed_;      // by number: it is in free_
  std::vector<Number> free_;      // all that are not taken, and some that are
};

}  // namespace perdix::index::sptree
