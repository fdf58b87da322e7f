// The rows that a query wants: bounds for each dimension, and perhaps a set of values within them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <perdix/elf.h>

namespace perdix::detail::index::elf {

inline constexpr unsigned kMaxDimensions = Elf::kMaxDimensions;

class Box {
 public:
  explicit Box(unsigned count) : dimensions(count) { upper.fill(~std::uint32_t{0}); }

  /// Restricts a dimension to the values of some intervals, which ascend and do not overlap. They
  /// outlive the Box. There is at least one.
  void restrict(unsigned dimension, std::span<const ElfInterval> intervals) {
    lower[dimension] = intervals.front().lower;
    upper[dimension] = intervals.back().upper;
    sets_[dimension] = intervals.size() > 1 ? intervals : std::span<const ElfInterval>();
    has_sets_ |= intervals.size() > 1;
  }

  /// Whether a dimension has no bounds.
  bool has_all(unsigned dimension) const {
    return lower[dimension] == 0 && upper[dimension] == ~std::uint32_t{0} && !has_set(dimension);
  }

  /// Whether no dimension has bounds.
  bool has_all() const {
    for (unsigned d = 0; d < dimensions; ++d) {
      if (!has_all(d)) return false;
    }
    return true;
  }

  /// Whether not all values within the bounds of a dimension are wanted.
  bool has_set(unsigned dimension) const { return !sets_[dimension].empty(); }

  /// The least wanted value that is not below `value`, which is within the bounds of a dimension
  /// that has a set.
  std::uint32_t next(unsigned dimension, std::uint32_t value) const {
    const std::span<const ElfInterval> set = sets_[dimension];
    const auto at = std::partition_point(set.begin(), set.end(), [&](const ElfInterval& interval) {
      return interval.upper < value;
    });
    return std::max(value, at->lower);
  }

  /// Whether the values of the dimensions from `first` on and below `end` are wanted.
  [[gnu::always_inline]] bool admits(const std::uint32_t* values, unsigned first,
                                     unsigned end) const {
    bool all = true;  // without a branch for each value
    for (unsigned d = first; d < end; ++d) all &= within(d, values[d - first]);
    return all && (!has_sets_ || in_sets(values, first, end));
  }

  /// Whether the values of all dimensions from `first` on are wanted.
  bool admits_all(const std::uint32_t* values, unsigned first) const {
    return admits(values, first, dimensions);
  }

  const unsigned dimensions;
  std::array<std::uint32_t, kMaxDimensions> lower{};
  std::array<std::uint32_t, kMaxDimensions> upper;

 private:
  bool within(unsigned dimension, std::uint32_t value) const {
    return lower[dimension] <= value && value <= upper[dimension];
  }

  bool in_sets(const std::uint32_t* values, unsigned first, unsigned end) const {
    for (unsigned d = first; d < end; ++d) {
      const std::uint32_t value = values[d - first];
      if (has_set(d) && next(d, value) != value) return false;
    }
    return true;
  }

  bool has_sets_ = false;
  std::array<std::span<const ElfInterval>, kMaxDimensions> sets_{};  // empty: all within the bounds
};

}  // namespace perdix::detail::index::elf
