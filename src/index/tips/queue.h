// The queue of a ring: the entries of its records, in their order, that wait for their replay.
//
// Writers append with the ring's lock. Others read what lies behind a position without it: a list
// of chunks, in which nothing changes but that it grows. A chunk lives as long as a position or an
// earlier chunk leads to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "index/tips/key_order.h"

namespace perdix::detail::index::tips {

class Queue {
 public:
  struct Chunk {
    explicit Chunk(std::size_t its_capacity)
        : capacity(its_capacity),
          slots(std::make_unique_for_overwrite<RankedEntry[]>(its_capacity)) {}

    const std::size_t capacity;
    const std::unique_ptr<RankedEntry[]> slots;  // those below `size` never change
    std::atomic<std::size_t> size{0};
    std::atomic<Chunk*> next{nullptr};  // null, unless it is full
    std::shared_ptr<Chunk> owned_next;  // what `next` says
  };

  /// Of an entry, or behind the last one.
  struct Position {
    std::shared_ptr<Chunk> chunk;
    std::size_t index = 0;
  };

  /// Makes room for one more entry. Throws bad_alloc.
  void make_room() {
    Chunk& last = *last_;
    if (last.size.load(std::memory_order_relaxed) < last.capacity || last.owned_next) return;
    last.owned_next = std::make_shared<Chunk>(std::min(2 * last.capacity, kMaxChunk));
    last.next.store(last.owned_next.get(), std::memory_order_release);
  }

  /// The caller has called make_room().
  void push(Entry& entry, Kind keys) noexcept {
    if (last_->owned_next) last_ = last_->owned_next;
    const std::size_t size = last_->size.load(std::memory_order_relaxed);
    last_->slots[size] = RankedEntry(entry, keys);
    last_->size.store(size + 1, std::memory_order_release);
  }

  Position end() const { return {last_, last_->size.load(std::memory_order_relaxed)}; }

  /// Calls show(first, size) for the slots from `begin` on, chunk by chunk, up to `end`, or to the
  /// last one that is there when it comes there. Needs no lock.
  template <class Show>
  static void for_each(const Position& begin, const Position& end, const Show& show) {
    std::size_t i = begin.index;
    for (const Chunk* chunk = begin.chunk.get(); chunk != nullptr; i = 0) {
      const bool is_last = chunk == end.chunk.get();
      const std::size_t size = is_last ? end.index : chunk->size.load(std::memory_order_acquire);
      if (size > i) show(chunk->slots.get() + i, size - i);
      if (is_last) return;
      chunk = chunk->next.load(std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::size_t kMinChunk = 16, kMaxChunk = 1024;

  std::shared_ptr<Chunk> last_ = std::make_shared<Chunk>(kMinChunk);
};

}  // namespace perdix::detail::index::tips
