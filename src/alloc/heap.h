// The global part of the allocator: gives spans of blocks to lanes, and runs of spans and whole
// chunks to large objects.
//
// Structures in PM that existed when the pool was opened are read when they are needed. A chunk's
// span table is read when a free span is needed or one of its blocks is freed; a span's bitmap,
// when a block of its class is needed or freed. Invariant: a structure that was not read yet does
// not change in PM.
//
// Claims keep free spans of chunks of spans: invariant: each Effort but `claimed` leaves as many
// free as are claimed. After an opening fewer may be free.
//
// Thread-safe: one mutex, taken when a lane has used up a span. Lock order: lane, then heap. What
// the heap writes to PM is neutral (for example, it turns a free span into a span without blocks)
// and durable when the call returns, so it needs no log. A span is formed in PM without the mutex,
// so a thread that is suspended there does not stop others that need a span of an existing chunk.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <perdix/types.h>

#include "alloc/chunks.h"
#include "alloc/run_buckets.h"
#include "alloc/span_map.h"
#include "alloc/topology.h"
#include "alloc/zeroed_array.h"
#include "util/arena.h"

namespace perdix::detail::alloc {

/// Where to look for space.
enum class Effort : std::uint8_t {
  local,     ///< what is there, in chunks of the thread's node
  grow,      ///< a new chunk; throws out_of_space if there can't be one
  anywhere,  ///< what is there, in chunks of any node
  claimed,   ///< a part of what is claimed, in chunks of any node
};

class Heap {
 public:
  Heap(Space& space, unsigned nodes);

  Chunks& chunks() noexcept { return chunks_; }
  const Chunks& chunks() const noexcept { return chunks_; }

  /// Called once, after recovery: finds free chunks. Spans are read later, when they are needed.
  void open();

  /// Returns a span with free blocks, which the caller owns until release(); nullptr if there is
  /// none. Throws out_of_space if `effort` is grow and the pool can't grow.
  Span* acquire(unsigned size_class, unsigned node, Effort effort);

  /// Ends the ownership of a span. The caller has given back the blocks that it has claimed and not
  /// taken.
  void release(Span& span) noexcept;

  /// Gives taken blocks back: bits of word `word` of the span's bitmap. They are free in PM.
  void give_back(Span& span, std::uint32_t word, std::uint64_t blocks) noexcept;

  /// The span of blocks that covers an offset. Throws Errc::corrupt if there is none.
  Span& span_at(Offset offset) {
    const std::uint64_t chunk = chunk_of(offset);
    if (chunk < chunks_.count()) [[likely]] {
      if (SpanMap* map = maps_[chunk].load(std::memory_order_acquire)) [[likely]] {
        if (Span* span = map->spans[span_index(offset)].load(std::memory_order_acquire)) [[likely]]
          return *span;
      }
    }
    return learn_span_at(offset);
  }

  const void* address(Offset offset) const noexcept { return &view_.at<std::byte>(offset); }

  /// Prefetches the DRAM object of the span that covers an offset, and its bitmap.
  void prefetch(Offset offset) const noexcept {
    const std::uint64_t chunk = chunk_of(offset);
    if (chunk >= chunks_.count()) return;
    const SpanMap* map = maps_[chunk].load(std::memory_order_acquire);
    if (map == nullptr) return;
    __builtin_prefetch(map->spans[span_index(offset)].load(std::memory_order_acquire));
    __builtin_prefetch(&view_.span(span_offset(chunk, span_index(offset))));
  }

  /// Take a run of spans, 1 < spans <= kMaxRun, or of chunks, and return its offset; kNull if there
  /// is none. Throw out_of_space if `effort` is grow and the pool can't grow. Write no mark to PM.
  Offset take_run(std::uint16_t spans, unsigned node, Effort effort);
  Offset take_chunks(std::uint16_t chunks, Effort effort);

  /// Return how many spans an allocated run has, and how many chunks an allocated large object. The
  /// heap knows the run's chunk from then on. Throw Errc::corrupt if none begins at the offset.
  std::uint16_t run_at(Offset offset);
  std::uint16_t chunks_at(Offset offset) const;

  /// Gives a run back, which is free in PM.
  void give_back_run(Offset offset);

  /// Gives the chunks of a large object back, which are free in PM.
  void give_back_chunks(Offset offset);

  /// Keeps this many free spans more for claims (claim.h): only Effort::claimed takes them. Returns
  /// false if there are too few. Throws out_of_space if `effort` is grow and the pool can't grow.
  bool claim(std::uint64_t spans, unsigned node, Effort effort);

  /// Keeps spans that were claimed before the pool was opened, as far as they are free.
  void restore_claims(std::uint64_t spans) noexcept;

  /// Keeps so many fewer.
  void unclaim(std::uint64_t spans) noexcept;

  /// Verifies that the DRAM objects agree with PM, and adds to `report`. No operation may run.
  void check(CheckReport& report) const;

 private:
  struct Node {
    std::array<SpanList, kClasses> partial;
    std::array<SpanList, kClasses> empty;
    RunBuckets runs;
  };

  /// A span that the caller owns from now on; null: none was found.
  struct Found {
    Span* span = nullptr;
    bool formed = true;  // false: the caller has to call form_span()
  };

  void form_span(Span& span);

  // The caller of each of these holds mutex_.
  Found look_for_span(unsigned size_class, unsigned node, Effort effort);
  Found find_span(unsigned size_class, unsigned node, Effort effort);
  Span* listed_span(unsigned size_class, Node& node) noexcept;
  void list(Span& span) noexcept;
  void discover_spans(unsigned size_class, unsigned budget);
  void discover_all_spans();
  bool discover_chunks();
  Offset find_run(unsigned spans, unsigned node, Effort effort);
  void grow(unsigned spans, unsigned node);
  RunBuckets& runs_of(const SpanMap& map) noexcept { return nodes_[map.node].runs; }
  std::uint64_t free_spans() const noexcept;
  bool harvest_spans(Node& node);
  bool harvest_chunks();
  SpanMap& learn_chunk(std::uint64_t chunk);
  Span& learn_span(SpanMap& map, unsigned index, unsigned size_class);
  Span& learn_span_at(Offset offset);
  SpanMap& new_map(std::uint64_t chunk, unsigned node);
  Span& new_span(SpanMap& map, unsigned index, unsigned size_class);
  void forget_span(Span& span) noexcept;
  void form_chunk(std::uint64_t chunk, unsigned node);
  Span& fresh_span(Offset offset, unsigned size_class);
  void dissolve_span(Span& span);
  void relist(Span& span) noexcept;
  void check_span(const SpanMap& map, unsigned index, CheckReport& report) const;

  Space& space_;
  const pm::Persister& pm_;
  View view_;
  Chunks chunks_;
  mutable std::mutex mutex_;
  util::Arena arena_;
  ZeroedArray<std::atomic<SpanMap*>> maps_;  // by chunk
  std::vector<Node> nodes_;
  std::uint64_t claimed_ = 0;  // free spans
  SpanMap* unused_maps_ = nullptr;
  std::array<Span*, 65> unused_spans_{};  // by words of the bitmap

  // What was there at open() and has not been read since lies below these cursors. They move down,
  // so the newest chunks are read first.
  std::uint64_t chunk_cursor_ = 0;
  std::array<std::uint64_t, kClasses> span_cursor_{};  // in spans
};

}  // namespace perdix::detail::alloc
