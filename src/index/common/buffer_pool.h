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
// The budget is a bound in bytes of DRAM, and buffers pay for what is kept about them. Memory comes
// in chunks of a few pages, one by one at first, so that an index with few buffers takes little;
// then in slabs of many chunks. Neither has more buffers than the budget allows. The first touch of
// a slab takes milliseconds, and a caller that needs one holds a node's lock. So once half of the
// newest slab is taken, a background thread makes the next one ready.
//
// Thread-safe. A buffer in use belongs to the holder of its node's lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "alloc/zeroed_array.h"
#include "util/arena.h"
#include "util/signals.h"

namespace perdix::detail::index {

template <class WriteBuffer>
class BufferPool {
 public:
  using Buffer = WriteBuffer;
  using Number = std::uint32_t;  ///< 0: none

  /// Buffers in a chunk, which takes at most 64 KiB, and in a slab of chunks, for huge pages, which
  /// the arena maps from 2 MiB on.
  static constexpr Number kChunk = std::bit_floor((std::size_t{64} << 10) / sizeof(Buffer));
  static constexpr Number kSlabChunks = (4 << 20) / (kChunk * sizeof(Buffer));
  static constexpr Number kSlab = kSlabChunks * kChunk;

  /// DRAM that a buffer takes: its share of a chunk, which is whole pages, its place in the list of
  /// free ones, for which twice as many places are reserved, and three bits and a half of tables.
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kBytesEach =
      (kChunk * sizeof(Buffer) + kPage - 1) / kPage * kPage / kChunk + 2 * sizeof(Number) + 1;

  /// on_new(buffer) is called for each that becomes part of the pool; it is unused then.
  BufferPool(util::Arena& arena, std::function<void(Buffer&)> on_new)
      : arena_(&arena), on_new_(std::move(on_new)) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    drop_ready();
    for (Number chunk = 0; chunk * kChunk < end_; chunk += chunks_from(chunk)) {
      if (Buffer* first = chunk_of(chunk * kChunk)) delete_buffers(first, buffers_from(chunk));
    }
  }

  /// The bytes of DRAM that buffers may take, and how many of them each takes elsewhere (`beside`).
  /// Before the first use.
  void set_budget(std::uint64_t bytes, std::uint64_t beside = 0) {
    if (chunks_ == nullptr) chunks_ = alloc::make_zeroed_array<std::atomic<Buffer*>>(kChunks);
    const std::uint64_t buffers = bytes / (kBytesEach + beside);
    budget_ = static_cast<Number>(std::min<std::uint64_t>(buffers, kMaxNumber));
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

  /// Like acquire() without its budget: for changes that exist already, after a restart.
  Number acquire_beyond_budget(Number preferred) {
    const std::lock_guard lock(mutex_);
    const Number number = is_free(preferred) ? preferred : next_free();
    taken_[number] = true;
    const Number before = in_use_.fetch_add(1, std::memory_order_relaxed);
    if (before % kSlab == kSlab / 2) make_ready();
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
      if (!exists(number)) continue;
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
      if (!exists(number)) continue;
      Buffer& buffer = at(number);
      if (buffer.node.load(std::memory_order_acquire) == nullptr) continue;
      if (!buffer.hot.exchange(false, std::memory_order_relaxed)) return number;
    }
    return 0;
  }

 private:
  // So that all numbers of its chunk fit in a node.
  static constexpr Number kMaxNumber = (1 << Buffer::Shape::kNumberBits) - 1 - kChunk;
  static constexpr Number kChunks = kMaxNumber / kChunk + 2;

  Buffer* chunk_of(Number index) const {
    return chunks_[index / kChunk].load(std::memory_order_acquire);
  }

  /// Whether there is a buffer of that number.
  bool exists(Number number) const {
    const Number index = number - 1;
    return chunk_of(index) != nullptr && index % kChunk < buffers_of(index / kChunk);
  }

  /// How many buffers a chunk has: that in which the budget ends has no others. (Beyond the budget
  /// buffers have the numbers of later chunks.)
  Number buffers_of(Number chunk) const {
    const Number first = chunk * kChunk;
    return first < budget_ ? std::min(kChunk, budget_ - first) : kChunk;
  }

  /// Slabs are where all of their buffers are within the budget. In place of the first one there
  /// are chunks.
  Number slabs() const { return std::max(budget_ / kSlab, Number{1}) - 1; }
  bool is_in_slab(Number chunk) const {
    const Number slab = chunk / kSlabChunks;
    return slab != 0 && slab <= slabs();
  }

  /// How many chunks, and buffers, come together with this chunk, if it is the first of them.
  Number chunks_from(Number chunk) const { return is_in_slab(chunk) ? kSlabChunks : 1; }
  Number buffers_from(Number chunk) const { return is_in_slab(chunk) ? kSlab : buffers_of(chunk); }

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

  Number first_missing() {
    while (missing_ < kChunks && chunk_of(missing_ * kChunk) != nullptr) ++missing_;
    return missing_;
  }

  /// Makes the chunk, and those that come with it.
  void make_chunks(Number chunk) {
    if (chunk > kMaxNumber / kChunk) throw std::bad_alloc();
    const Number count = chunks_from(chunk), buffers = buffers_from(chunk);
    const Number first_chunk = chunk / count * count, first = first_chunk * kChunk;
    const Number end = std::max(first + buffers, end_.load(std::memory_order_relaxed));
    if (free_.capacity() < end) free_.reserve(places_for(end));
    taken_.resize(end + 1);
    listed_.resize(end + 1);
    const bool is_slab = is_in_slab(chunk);
    Buffer* const made = is_slab && ready_.valid() ? ready_.get() : new_buffers(buffers);
    for (Number i = buffers; i > 0; --i) {
      on_new_(made[i - 1]);
      list(first + i);
    }
    for (Number i = 0; i < count; ++i)
      chunks_[first_chunk + i].store(made + i * kChunk, std::memory_order_release);
    if (is_slab) ++made_slabs_;
    end_.store(end, std::memory_order_release);
  }

  /// How many places free_ gets: enough that it seldom grows, and none that it cannot need.
  std::size_t places_for(Number end) const {
    return std::max<std::size_t>(end, std::min<std::size_t>(std::size_t{2} * end, budget_));
  }

  /// Begins to make a slab ready, unless that was done or the budget has no place for one more.
  void make_ready() {
    if (ready_.valid() || made_slabs_ >= slabs()) return;
    try {
      ready_ = std::async(std::launch::async, [this] {
        util::block_signals();
        return new_buffers(kSlab);
      });
    } catch (const std::exception&) {
      // No thread, or no memory for one: the caller that needs the slab makes it.
    }
  }

  Buffer* new_buffers(std::size_t buffers) const {
    auto* made = static_cast<Buffer*>(arena_->allocate(buffers * sizeof(Buffer)));
    std::uninitialized_default_construct_n(made, buffers);
    return made;
  }

  void drop_ready() {
    if (!ready_.valid()) return;
    try {
      delete_buffers(ready_.get(), kSlab);
    } catch (const std::bad_alloc&) {
      // It was never made.
    }
  }

  void delete_buffers(Buffer* made, std::size_t buffers) {
    std::destroy_n(made, buffers);
    arena_->release(made, buffers * sizeof(Buffer));
  }

  util::Arena* arena_;
  std::function<void(Buffer&)> on_new_;
  Number budget_ = 0;  // constant since set_budget()
  std::atomic<Number> in_use_{0};
  std::atomic<Number> end_{0};  // the greatest number of a chunk
  std::atomic<Number> hand_{0};
  alloc::ZeroedArray<std::atomic<Buffer*>> chunks_;  // constant since set_budget()
  std::mutex mutex_;                                 // guards what follows
  std::future<Buffer*> ready_;                       // a slab that has no place yet
  Number made_slabs_ = 0;
  Number missing_ = 0;        // no chunk before it is missing
  std::vector<bool> taken_;   // by number
  std::vector<bool> listed_;  // by number: it is in free_
  std::vector<Number> free_;  // all that are not taken, and some that are
};

}  // namespace perdix::detail::index
