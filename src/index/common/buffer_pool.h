// The write buffers of an index: as many as a DRAM budget allows, handed out to the nodes that are
// written to, and taken back from those that are not.
//
// Buffers have numbers from 1 on. A node keeps only the number of its buffer. The memory of buffers
// stays in place until the pool of buffers is destroyed (wal::Chain relies on it).
//
// Which nodes have one: every node that asks, while buffers are left; then CLOCK decides. A hand
// goes round, clears the mark of buffers that were written to since its last round, and offers the
// others.
//
// The caller may prefer a number. So a node can have a buffer whose place is known before the node
// has been read, and a write waits for the lines of both in parallel.
//
// Memory comes in chunks, one by one at first, so that an index with few buffers takes little; then
// in slabs of many chunks, if the budget is large. The first touch of a slab takes milliseconds,
// and a caller that needs one holds a node's lock. So once half of the newest slab is taken, a
// background thread makes the next one ready.
//
// Thread-safe. A buffer in use belongs to the holder of its node's lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "util/arena.h"
#include "util/signals.h"

namespace perdix::detail::index {

template <class WriteBuffer>
class BufferPool {
 public:
  using Buffer = WriteBuffer;
  using Number = std::uint32_t;  ///< 0: none

  /// Buffers in a chunk, and in a slab of chunks. Slabs are for huge pages, which the arena maps
  /// from 2 MiB on, and for budgets that they exceed by an eighth at most.
  static constexpr Number kChunk = 256;
  static constexpr Number kSlabChunks = (4 << 20) / (kChunk * sizeof(Buffer));
  static constexpr Number kSlab = kSlabChunks * kChunk;

  /// on_new(buffer) is called for each that becomes part of the pool; it is unused then.
  BufferPool(util::Arena& arena, std::function<void(Buffer&)> on_new)
      : arena_(&arena), on_new_(std::move(on_new)) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    drop_ready();
    for (Number chunk = 0; chunk * kChunk < end_; chunk += chunks_from(chunk)) {
      if (Buffer* first = chunk_of(chunk * kChunk)) delete_chunks(first, chunks_from(chunk));
    }
  }

  /// How many buffers may be in use, in bytes of DRAM. Before the first use.
  void set_budget(std::uint64_t bytes) {
    if (chunks_ == nullptr) chunks_ = std::make_unique<Chunks>();
    budget_ = static_cast<Number>(std::min<std::uint64_t>(bytes / sizeof(Buffer), kMaxNumber));
    has_slabs_ = budget_ >= 8 * kSlab;
  }
  Number budget() const { return budget_; }
  Number in_use() const { return in_use_.load(std::memory_order_relaxed); }

  Buffer& at(Number number) const { return chunk_of(number - 1)[(number - 1) % kChunk]; }

  /// Asks for the line that a change of this buffer needs, if there is one. Any number but 0, up
  /// to the budget.
  void prefetch(Number number) const {
    if (const Buffer* chunk = chunk_of(number - 1))
      chunk[(number - 1) % kChunk].prefetch_for_change();
  }

  /// An unused buffer, if possible the preferred one, which is at most the budget; 0 if the budget
  /// is used up. Throws bad_alloc, and then nothing has changed.
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
    if (has_slabs_ && before % kSlab == kSlab / 2) make_ready(before);
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
      if (chunk_of(number - 1) == nullptr) continue;
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
      if (chunk_of(number - 1) == nullptr) continue;
      Buffer& buffer = at(number);
      if (buffer.node.load(std::memory_order_acquire) == nullptr) continue;
      if (!buffer.hot.exchange(false, std::memory_order_relaxed)) return number;
    }
    return 0;
  }

 private:
  static constexpr Number kChunks = 1 << 14;
  // So that all numbers of its slab fit in a node.
  static constexpr Number kMaxNumber = (1 << Buffer::Shape::kNumberBits) - 1 - kSlab;
  static_assert((kMaxNumber + kSlab) / kChunk < kChunks);

  Buffer* chunk_of(Number index) const {
    return (*chunks_)[index / kChunk].load(std::memory_order_acquire);
  }

  /// How many chunks come together with this one, if it is the first of them. Those of the first
  /// slab come one by one.
  Number chunks_from(Number chunk) const {
    return has_slabs_ && chunk >= kSlabChunks ? kSlabChunks : 1;
  }

  // Under mutex_, as all that follow.
  bool is_free(Number number) {
    if (number == 0) return false;
    if (chunk_of(number - 1) == nullptr) make_chunks((number - 1) / kChunk);
    return !taken_[number];
  }

  Number next_free() {
    for (;;) {
      if (free_.empty()) make_chunks(first_missing());
      const Number number = free_.back();
      free_.pop_back();
      listed_[number] = false;
      if (!taken_[number]) return number;  // else a node preferred it
    }
  }

  void list(Number number) {
    if (!listed_[number]) free_.push_back(number);  // make_chunks() has reserved a place
    listed_[number] = true;
  }

  Number first_missing() const {
    Number chunk = 0;
    while (chunk < kChunks && chunk_of(chunk * kChunk) != nullptr) ++chunk;
    return chunk;
  }

  /// Makes the chunk, and those that come with it.
  void make_chunks(Number chunk) {
    if (chunk > kMaxNumber / kChunk) throw std::bad_alloc();
    const Number count = chunks_from(chunk);
    const Number first_chunk = chunk / count * count, first = first_chunk * kChunk;
    const Number buffers = count * kChunk;
    const Number end = std::max(first + buffers, end_.load(std::memory_order_relaxed));
    if (free_.capacity() < end) free_.reserve(std::size_t{2} * end);
    taken_.resize(end + 1);
    listed_.resize(end + 1);
    Buffer* made = count == kSlabChunks && ready_.valid() ? ready_.get() : new_chunks(count);
    for (Number i = buffers; i > 0; --i) {
      on_new_(made[i - 1]);
      list(first + i);
    }
    for (Number i = 0; i < count; ++i)
      (*chunks_)[first_chunk + i].store(made + i * kChunk, std::memory_order_release);
    end_.store(end, std::memory_order_release);
  }

  /// Begins to make a slab ready, unless that was done or the rest of the budget has no use for it.
  void make_ready(Number in_use) {
    if (ready_.valid() || in_use + kSlab > budget_) return;
    try {
      ready_ = std::async(std::launch::async, [this] {
        util::block_signals();
        return new_chunks(kSlabChunks);
      });
    } catch (const std::exception&) {
      // No thread, or no memory for one: the caller that needs the slab makes it.
    }
  }

  Buffer* new_chunks(Number count) const {
    const std::size_t buffers = std::size_t{count} * kChunk;
    auto* made = static_cast<Buffer*>(arena_->allocate(buffers * sizeof(Buffer)));
    std::uninitialized_default_construct_n(made, buffers);
    return made;
  }

  void drop_ready() {
    if (!ready_.valid()) return;
    try {
      delete_chunks(ready_.get(), kSlabChunks);
    } catch (const std::bad_alloc&) {
      // It was never made.
    }
  }

  void delete_chunks(Buffer* made, Number count) {
    const std::size_t buffers = std::size_t{count} * kChunk;
    std::destroy_n(made, buffers);
    arena_->release(made, buffers * sizeof(Buffer));
  }

  using Chunks = std::array<std::atomic<Buffer*>, kChunks>;

  util::Arena* arena_;
  std::function<void(Buffer&)> on_new_;
  Number budget_ = 0;
  bool has_slabs_ = false;  // constant since set_budget()
  std::atomic<Number> in_use_{0};
  std::atomic<Number> end_{0};  // the greatest number of a chunk
  std::atomic<Number> hand_{0};
  std::unique_ptr<Chunks> chunks_;  // constant since set_budget()
  std::mutex mutex_;                // guards what follows
  std::future<Buffer*> ready_;      // a slab that has no place yet
  std::vector<bool> taken_;         // by number
  std::vector<bool> listed_;        // by number: it is in free_
  std::vector<Number> free_;        // all that are not taken, and some that are
};

}  // namespace perdix::detail::index
