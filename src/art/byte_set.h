// A set of bytes: which children the larger nodes have, in order.
//
// One writer at a time. Readers may run at the same time, and validate afterwards that no writer
// interfered.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "art/key.h"

namespace perdix::detail::art {

class ByteSet {
 public:
  static constexpr Entry kNone = 256;

  void insert(Entry byte) noexcept { store(byte, load(byte) | bit(byte)); }
  void erase(Entry byte) noexcept { store(byte, load(byte) & ~bit(byte)); }

  /// The smallest byte that is >= from, or kNone; from in [0, 256].
  Entry next(Entry from) const noexcept {
    if (from > 255) return kNone;
    std::uint64_t bits = load(from) & (~std::uint64_t{0} << (from % 64));
    for (Entry base = from & ~63;;) {
      if (bits != 0) return base + std::countr_zero(bits);
      base += 64;
      if (base > 255) return kNone;
      bits = load(base);
    }
  }

  /// The greatest byte that is <= from, or kNone; from in [-1, 255].
  Entry previous(Entry from) const noexcept {
    if (from < 0) return kNone;
    std::uint64_t bits = load(from) & (~std::uint64_t{0} >> (63 - from % 64));
    for (Entry base = from & ~63;;) {
      if (bits != 0) return base + 63 - std::countl_zero(bits);
      base -= 64;
      if (base < 0) return kNone;
      bits = load(base);
    }
  }

 private:
  static constexpr std::uint64_t bit(Entry byte) noexcept {
    return std::uint64_t{1} << (byte % 64);
  }

  // relaxed: ordered by the version lock of the node.
  std::uint64_t load(Entry byte) const noexcept {
    return words_[static_cast<unsigned>(byte) / 64].load(std::memory_order_relaxed);
  }
  void store(Entry byte, std::uint64_t bits) noexcept {
    words_[static_cast<unsigned>(byte) / 64].store(bits, std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, 4> words_{};
};

}  // namespace perdix::detail::art
