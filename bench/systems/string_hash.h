// Hashes and compares keys for hash maps that others wrote: a view of a string is looked up without
// a copy. Numbers are for the map's own default.
#pragma once

#include <functional>
#include <string_view>
#include <type_traits>

#include <perdix/types.h>

namespace perdix::bench {

/// std::hash of libstdc++ is MurmurHash: all bits of its results matter, which Boost's maps want
/// to be told.
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
