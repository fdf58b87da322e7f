// The write buffers of CCEH: half of a segment (Zhao et al. 2024, section 3.1).
#pragma once

#include "index/cceh/shape.h"
#include "index/common/home_buffers.h"

namespace perdix::detail::index::cceh {

struct BufferShape {
  using Node = Home;
  using Slots = NoSlots;

  static constexpr unsigned kPairs = Shape().slots() / 2;
  static constexpr unsigned kSlots = Shape().slots();
  static constexpr unsigned kNumberBits = 20;

  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

/// How many pairs the buffer of a segment takes.
inline unsigned buffered_pairs(const Shape& shape) {
  const unsigned half = shape.slots() / 2;
  return half < BufferShape::kPairs ? half : BufferShape::kPairs;
}

}  // namespace perdix::detail::index::cceh
