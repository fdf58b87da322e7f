// The write buffers of the skip list: 16 pairs for a tall node (Zhao et al. 2024, section 3.1).
#pragma once

#include <cstdint>

#include "index/common/home_buffers.h"

namespace perdix::detail::index::skiplist {

struct BufferShape {
  using Node = Home;
  using Slots = NoSlots;

  static constexpr unsigned kPairs = 16;
  static constexpr unsigned kSlots = 0;
  static constexpr unsigned kNumberBits = 22;

  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

}  // namespace perdix::detail::index::skiplist
