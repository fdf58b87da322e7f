// The age of chains, and what a chain of an age can hold back: its records may lie in all stripes,
// since each writer appends to its own stripe.
//
// A generation is a time. Its mark has a position of each stripe that the stripe's tail had reached
// when the generation began, so that no chain of this or a later generation has a record before it.
// A generation begins after a fixed number of bytes, so that few are needed.
//
// begin() is called by one thread at a time; the rest is thread-safe. The mark of a generation that
// no chain has any more may be another's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "wal/layout.h"

namespace perdix::detail::wal {

/// A position of each stripe.
using Tails = std::array<Position, kStripes>;

/// 64 bits: one begins for each 64 KiB of records at most, so positions end sooner.
using Generation = std::uint64_t;
inline constexpr Generation kNoGeneration = std::numeric_limits<Generation>::max();

class Marks {
 public:
  /// Generations that can have chains at a time.
  static constexpr Generation kMaxMarks = 256;

  /// The generation of a chain that begins now.
  Generation current() const noexcept { return current_.load(std::memory_order_acquire); }

  /// Whether another can begin while there are chains of the given one.
  bool has_room(Generation oldest) const noexcept {
    return oldest == kNoGeneration || current() - oldest + 1 < kMaxMarks;
  }

  /// `tails`: read before the call.
  void begin(const Tails& tails) noexcept {
    const Generation next = current() + 1;
    for (unsigned i = 0; i < kStripes; ++i) of(next)[i].store(tails[i], std::memory_order_relaxed);
    // release: a thread that sees the generation appends behind its mark.
    current_.store(next, std::memory_order_release);
  }

  Position at(Generation generation, unsigned stripe) const noexcept {
    return marks_[generation % kMaxMarks][stripe].load(std::memory_order_relaxed);
  }

 private:
  using Mark = std::array<std::atomic<Position>, kStripes>;

  Mark& of(Generation generation) noexcept { return marks_[generation % kMaxMarks]; }

  std::atomic<Generation> current_{0};
  std::array<Mark, kMaxMarks> marks_{};
};

}  // namespace perdix::detail::wal
