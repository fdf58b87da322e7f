// Hashes and compares string keys for third-party hash maps, which can then look up a view without
// copying it. For numbers the map's default applies.
#pragma once

#include <functional>
#include <string_view>
#include <type_traits>

#include <perdix/types.h>

namespace perdix::bench {

/// std::hash of libstdc++ is MurmurHash, in whose results all bits matter. Boost's maps must be
/// told so.
struct StringHash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};

struct StringEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const noexcept { return a == b; }
};

/// `StringHash` for strings, else the hash that a map takes for numbers by default.
template <Storable K, class Default>
using HashOf = std::conditional_t<kKindOf<K> == Kind::bytes, StringHash, Default>;
template <Storable K>
using EqualOf = std::conditional_t<kKindOf<K> == Kind::bytes, StringEqual, std::equal_to<K>>;

}  // namespace perdix::bench
