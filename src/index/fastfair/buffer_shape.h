// The write buffers of FAST&FAIR: half of a leaf (Zhao et al. 2024, section 3.1).
#pragma once

#include <cstdint>

#include "index/common/home_buffers.h"
#include "index/fastfair/layout.h"

namespace perdix::detail::index::fastfair {

struct BufferShape {
  using Node = Home;
  using Slots = NoSlots;

  static constexpr unsigned kPairs = kCapacity / 2;
  static constexpr unsigned kSlots = kCapacity;
  static constexpr unsigned kNumberBits = 22;

  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

/// How many pairs a leaf and its buffer have together, at most.
inline constexpr unsigned kMaxPairs = kCapacity + BufferShape::kPairs;

/// How many pairs the buffer of a leaf takes, by the number of pairs that the leaf has room for.
constexpr unsigned buffered_pairs(unsigned fanout) { return fanout / 2; }

}  // namespace perdix::detail::index::fastfair
