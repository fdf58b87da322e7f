// What the suites must know of Elf: a shape with which a few rows have the structure of many, and
// rows to put into it. Its presence tells CMake that this is an engine without pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "index/elf/shape.h"
#include "util/random.h"

namespace perdix::detail::index::elf {

/// Blocks of 48 words and segments of four rows.
inline constexpr Shape kSmallShape{kMinSlotShift, 4};

using TestRow = std::vector<std::uint32_t>;

/// Values of which many are equal, with both ends of the range among them.
inline std::uint32_t random_value(util::Random& random) {
  switch (random.below(8)) {
    case 0: return 0;
    case 1: return ~std::uint32_t{0};
    case 2: return static_cast<std::uint32_t>(random());
    default: return static_cast<std::uint32_t>(random.below(6)) + 10;
  }
}

inline TestRow random_row(util::Random& random, unsigned dimensions) {
  TestRow row(dimensions);
  for (std::uint32_t& value : row) value = random_value(random);
  return row;
}

}  // namespace perdix::detail::index::elf
