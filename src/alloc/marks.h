// The marks in PM that say which blocks are allocated: bits, entries of span tables, words of
// chunks. Every change is idempotent, atomic, and flushed but not fenced: the caller's protocol
// decides when it must be durable.
//
// Thread-safe for different blocks.
#pragma once

#include <cstdint>

#include "alloc/chunks.h"
#include "alloc/record.h"
#include "alloc/view.h"
#include "pm/persist.h"

namespace perdix::detail::alloc {

/// A large object begins behind the header line of a chunk, a run with a span, and a small block at
/// neither: positions tell which of them an offset means.
constexpr bool is_large(Offset offset) noexcept { return offset % kChunkSize == kLargeHeader; }
constexpr bool is_run(Offset offset) noexcept { return position_in_span(offset) == 0; }

class Marks {
 public:
  Marks(const pm::Persister& pm, View view, Chunks& chunks) noexcept
      : pm_(pm), view_(view), chunks_(chunks) {}

  /// Asks for the memory of the mark that allocate() or free() will change.
  void prefetch(Offset span, std::uint32_t index) const {
    __builtin_prefetch(&view_.span(span).bitmap[index / 64]);
  }

  /// Of block `index` of the span at `span`.
  void allocate(Offset span, std::uint32_t index) const {
    std::uint64_t& word = view_.span(span).bitmap[index / 64];
    pm::before_write(&word, sizeof word);
    // Other lanes change other bits of the word at the same time.
    __atomic_fetch_or(&word, std::uint64_t{1} << (index % 64), __ATOMIC_RELEASE);
    pm::on_write(&word, sizeof word);
    pm_.flush(&word, sizeof word);  // durable at the caller's fence
  }
  void free(Offset span, std::uint32_t index) const {
    std::uint64_t& word = view_.span(span).bitmap[index / 64];
    pm::before_write(&word, sizeof word);
    __atomic_fetch_and(&word, ~(std::uint64_t{1} << (index % 64)), __ATOMIC_RELEASE);
    pm::on_write(&word, sizeof word);
    pm_.flush(&word, sizeof word);  // durable at the caller's fence
  }

  /// Of a run or a large object.
  void allocate(BlockRef object) const {
    if (is_large(object.offset))
      return chunks_.write(chunk_of(object.offset), {ChunkKind::large, 0, object.units});
    write_entry(object.offset, static_cast<SpanEntry>(kRunFlag | object.units));
  }
  void free(BlockRef object) const {
    if (is_large(object.offset))
      return chunks_.write(chunk_of(object.offset), {ChunkKind::free, 0, object.units});
    write_entry(object.offset, kFreeSpan);
  }

  /// The marks as changes of a commit, which makes them later. `wrote` follows that.
  pm::Change allocation(Offset span, std::uint32_t index) const {
    return bit_of(span, index, true);
  }
  pm::Change release(Offset span, std::uint32_t index) const { return bit_of(span, index, false); }
  pm::Change allocation(BlockRef object) const {
    if (is_large(object.offset))
      return chunk_word(object.offset, {ChunkKind::large, 0, object.units});
    return entry_of(object.offset, static_cast<SpanEntry>(kRunFlag | object.units));
  }
  pm::Change release(BlockRef object) const {
    if (is_large(object.offset))
      return chunk_word(object.offset, {ChunkKind::free, 0, object.units});
    return entry_of(object.offset, kFreeSpan);
  }
  void wrote(BlockRef object) const {
    if (is_large(object.offset)) chunks_.wrote(chunk_of(object.offset));
  }

  /// Of a ring slot; 0 empties it.
  void write_slot(std::uint64_t& slot, Offset block) const {
    pm_.store(slot, block);
    pm_.flush(&slot, sizeof slot);  // durable at the caller's fence
  }

 private:
  pm::Change bit_of(Offset span, std::uint32_t index, bool taken) const {
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    return {&view_.span(span).bitmap[index / 64], bit, taken ? bit : 0};
  }
  pm::Change chunk_word(Offset offset, ChunkWord word) const {
    return pm::set_word(view_.chunk(chunk_of(offset)).word, word.pack());
  }
  /// An entry is a part of a word.
  pm::Change entry_of(Offset offset, SpanEntry value) const {
    const auto entry =
        reinterpret_cast<std::uintptr_t>(&view_.chunk(chunk_of(offset)).spans[span_index(offset)]);
    const std::uintptr_t word = entry / sizeof(std::uint64_t) * sizeof(std::uint64_t);
    const auto shift = static_cast<unsigned>(8 * (entry - word));
    constexpr std::uint64_t kAll = static_cast<SpanEntry>(~SpanEntry{0});
    return {reinterpret_cast<std::uint64_t*>(word), kAll << shift, std::uint64_t{value} << shift};
  }

  void write_entry(Offset offset, SpanEntry value) const {
    SpanEntry& entry = view_.chunk(chunk_of(offset)).spans[span_index(offset)];
    pm_.store(entry, value);
    pm_.flush(&entry, sizeof entry);  // durable at the caller's fence
  }

  const pm::Persister& pm_;
  View view_;
  Chunks& chunks_;
};

}  // namespace perdix::detail::alloc
