// Separators of two neighbouring keys. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace perdix::detail::index {

inline std::uint64_t shortest_separator(std::uint64_t, std::uint64_t right) { return right; }

/// The shortest string above `left` and not above `right`: short bounds make small inner nodes.
inline std::string_view shortest_separator(std::string_view left, std::string_view right) {
  const auto differ = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return right.substr(0, static_cast<std::size_t>(differ.second - right.begin()) + 1);
}

}  // namespace perdix::detail::index
