// A chunk of spans, in DRAM: its spans of blocks, its runs, and which spans are free.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "alloc/span.h"

namespace perdix::detail::alloc {

/// A set of spans of one chunk.
class SpanSet {
 public:
  bool contains(unsigned i) const noexcept { return words_[i / 64] >> (i % 64) & 1; }
  void add(unsigned begin, unsigned count) noexcept {
    for (unsigned i = begin; i < begin + count; ++i) words_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  void remove(unsigned begin, unsigned count) noexcept {
    for (unsigned i = begin; i < begin + count; ++i)
      words_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  }
  void clear() noexcept { words_ = {}; }

  unsigned size() const noexcept;
  /// Length of the longest run of neighbouring spans.
  unsigned longest_run() const noexcept;
  /// The first run of at least `count` spans; there must be one.
  unsigned find_run(unsigned count) const noexcept;

 private:
  std::array<std::uint64_t, kSpansPerChunk / 64> words_{};
};

struct SpanMap {
  std::uint64_t chunk = 0;
  std::uint16_t node = 0;

  /// Null where the span is not one of blocks, or was not looked at since the pool was opened.
  std::array<std::atomic<Span*>, kSpansPerChunk> spans{};

  // The rest under the heap's lock.
  std::array<std::uint8_t, kSpansPerChunk>
      run{};  // length of the run that begins there, taken or waiting; 0: none
  SpanSet free;
  unsigned bucket = 0;  // bit_width(longest free run); run_buckets.h lists maps by it
  SpanMap* previous = nullptr;
  SpanMap* next = nullptr;
};

}  // namespace perdix::detail::alloc
