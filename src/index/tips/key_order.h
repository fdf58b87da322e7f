// The order in which a batch is replayed.
//
// Writes come in any order, and an index with ordered keys has neighbouring keys in one node. In
// the order of the keys a batch finds most nodes in the processor's caches, and changes lines that
// have their undo record already.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include <perdix/types.h>

#include "index/tips/entry.h"

namespace perdix::detail::index::tips {

/// The first eight bytes of a key as a number, by which keys are ordered but for those that begin
/// alike.
inline std::uint64_t rank_of(std::string_view key, Kind kind) {
  std::uint64_t rank = 0;
  if (!key.empty()) std::memcpy(&rank, key.data(), std::min(key.size(), sizeof rank));
  static_assert(std::endian::native == std::endian::little);
  return kind == Kind::u64 ? rank : __builtin_bswap64(rank);
}

/// Sorts entries by the ranks of their keys. Entries of one key keep their order. Without memory
/// for that, all do.
inline void sort_by_key(std::vector<Entry*>& entries, Kind keys) noexcept {
  struct Place {
    std::uint64_t rank;
    std::size_t position;
  };
  try {
    std::vector<Place> places;
    std::vector<Entry*> sorted;
    places.reserve(entries.size());
    sorted.reserve(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i)
      places.push_back({rank_of(entries[i]->key(), keys), i});
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.position < b.position;
    });
    for (const Place& place : places) sorted.push_back(entries[place.position]);
    entries.swap(sorted);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace perdix::detail::index::tips
