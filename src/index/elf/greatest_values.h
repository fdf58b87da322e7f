// The greatest value of each dimension, as far as queries have seen: from it a search guesses where
// in a list a value lies. A wrong guess costs a line or two, and never changes an answer.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "index/elf/box.h"

namespace perdix::detail::index::elf {

/// Where a value may lie among `count` ascending ones that begin with `least` and end about
/// `greatest`: its index, if they are spread evenly.
inline std::uint32_t guess_index(std::uint32_t value, std::uint32_t least, std::uint32_t greatest,
                                 std::uint32_t count) {
  if (value <= least || count == 0) return 0;
  if (greatest <= least) return count / 2;
  const std::uint64_t distance = value - least;
  const std::uint64_t span = greatest - least;
  const std::uint64_t index = span < count ? distance : distance * (count - 1) / span;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(index, count - 1));
}

class GreatestValues {
 public:
  /// 0 if no value was seen.
  std::uint32_t of(unsigned dimension) const {
    return values_[dimension].load(std::memory_order_relaxed);
  }

  /// A list of the dimension has this value. Relaxed: a lost note costs a guess.
  void note(unsigned dimension, std::uint32_t value) {
    if (value > of(dimension)) values_[dimension].store(value, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint32_t>, kMaxDimensions> values_{};
};

}  // namespace perdix::detail::index::elf
