// The keys next to a key. They exist because the length of keys is bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <perdix/types.h>

namespace perdix::detail::index {

/// The least key above this one; none if it is the greatest.
inline std::optional<std::uint64_t> successor(std::uint64_t key) {
  if (key == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return key + 1;
}
inline std::optional<std::string> successor(std::string_view key) {
  std::string next(key);
  if (next.size() < kMaxKeySize) {
    next.push_back('\0');
    return next;
  }
  while (!next.empty() && next.back() == '\xff') next.pop_back();
  if (next.empty()) return std::nullopt;
  next.back() = static_cast<char>(next.back() + 1);
  return next;
}

/// The greatest key below this one; none if it is the least. A string is of at most `length` bytes,
/// or as long as the key: with the default no key lies between.
inline std::optional<std::uint64_t> predecessor(std::uint64_t key, std::size_t = kMaxKeySize) {
  if (key == 0) return std::nullopt;
  return key - 1;
}
inline std::optional<std::string> predecessor(std::string_view key,
                                              std::size_t length = kMaxKeySize) {
  std::optional<std::string> before;  // made in place: a string that long is not moved out of it
  if (key.empty()) return before;
  before.emplace(key.substr(0, key.size() - 1));
  if (key.back() == '\0') return before;
  length = std::max(length, key.size());
  before->reserve(length);
  before->push_back(static_cast<char>(key.back() - 1));
  before->resize(length, '\xff');
  return before;
}

/// A key below this one with few others between, as a rule none; none if it is the least. Costs
/// less than the predecessor of a string, which has kMaxKeySize bytes.
template <class Key>
auto just_below(Key key) {
  constexpr std::size_t kEnough = 64;
  return predecessor(key, kEnough);
}

/// The greatest key of all.
template <Storable K>
K greatest_key() {
  if constexpr (std::is_same_v<K, std::uint64_t>) {
    return std::numeric_limits<std::uint64_t>::max();
  } else {
    return std::string(kMaxKeySize, '\xff');
  }
}

}  // namespace perdix::detail::index
