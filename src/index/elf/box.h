// The rows that a query wants: bounds for each dimension.
#pragma once

#include <array>
#include <cstdint>

namespace perdix::detail::index::elf {

inline constexpr unsigned kMaxDimensions = 32;

struct Box {
  explicit Box(unsigned count) : dimensions(count) { upper.fill(~std::uint32_t{0}); }

  bool admits(unsigned dimension, std::uint32_t value) const {
    return lower[dimension] <= value && value <= upper[dimension];
  }

  /// Whether a dimension has no bounds.
  bool has_all(unsigned dimension) const {
    return lower[dimension] == 0 && upper[dimension] == ~std::uint32_t{0};
  }

  /// Whether the values of all dimensions from `first` on are within the bounds.
  bool admits_all(const std::uint32_t* values, unsigned first) const {
    bool all = true;  // without a branch for each value
    for (unsigned d = first; d < dimensions; ++d) all &= admits(d, values[d - first]);
    return all;
  }

  const unsigned dimensions;
  std::array<std::uint32_t, kMaxDimensions> lower{};
  std::array<std::uint32_t, kMaxDimensions> upper;
};

}  // namespace perdix::detail::index::elf
