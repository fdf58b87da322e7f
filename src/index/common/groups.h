// Lookups of many keys, in groups whose waits for memory overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index {

/// How many lookups overlap: about as many lines as a core can wait for.
inline constexpr std::size_t kGroup = 16;

/// Calls get(keys, out) for at most kGroup keys at a time, and the places of their values. Throws
/// invalid_argument, and calls nothing, if there are not enough places.
template <class Key, class Value, class Get>
void in_groups(std::span<const Key> keys, std::span<std::optional<Value>> out, Get get) {
  if (out.size() < keys.size()) {
    throw Error(Errc::invalid_argument,
                fmt::format("get_many: room for {} values, but {} keys", out.size(), keys.size()));
  }
  for (std::size_t i = 0; i < keys.size(); i += kGroup) {
    const std::size_t count = std::min(kGroup, keys.size() - i);
    get(keys.subspan(i, count), out.subspan(i, count));
  }
}

}  // namespace perdix::detail::index
