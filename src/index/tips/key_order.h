// The order of keys among the writes that wait (waiting.h).
//
// In this order they are replayed: an index with ordered keys has neighbouring keys in one node. So
// a batch finds most nodes in the processor's caches, and changes lines that have their undo record
// already.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

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

/// An entry that waits. The rank of an integer is the integer, so nobody has to look at the entry.
struct RankedEntry {
  RankedEntry() = default;
  RankedEntry(Entry& its_entry, Kind keys)
      : rank(rank_of(its_entry.key(), keys)), entry(&its_entry) {}

  std::uint64_t rank;
  Entry* entry;
};

/// A key that is looked for among slots.
struct RankedKey {
  RankedKey(std::string_view its_key, Kind keys) : rank(rank_of(its_key, keys)), key(its_key) {}

  std::uint64_t rank;
  std::string_view key;
};

/// Below 0 if the key of the slot comes before the other one, above 0 if it comes behind it.
inline int compare(const RankedEntry& a, const RankedKey& b, Kind keys) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  return keys == Kind::u64 ? 0 : a.entry->key().compare(b.key);
}
inline int compare(const RankedEntry& a, const RankedEntry& b, Kind keys) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  return keys == Kind::u64 ? 0 : a.entry->key().compare(b.entry->key());
}

/// Sorts slots by keys, and those of one key by age.
inline void sort_by_key(std::span<RankedEntry> slots, Kind keys) {
  std::sort(slots.begin(), slots.end(), [keys](const RankedEntry& a, const RankedEntry& b) {
    const int order = compare(a, b, keys);
    return order != 0 ? order < 0 : a.entry->number() < b.entry->number();
  });
}

}  // namespace perdix::detail::index::tips
