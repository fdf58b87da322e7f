// Many lookups in one call: a lookup waits for memory most of its time (the leaf in DRAM, the line
// of the entry, the blobs), so the keys of a group take each step together, and their waits
// overlap.
#pragma once

#include <array>

#include "index/common/groups.h"
#include "index/nbtree/nbtree.h"

namespace perdix::detail::index::nbtree {

template <class K, class Form>
void WordTree<K, Form>::find_words(std::span<const Key> keys,
                                   std::span<std::optional<Word>> out) const {
  std::array<TopSlot<K>, kGroup> tops;
  std::array<Hash16, kGroup> hashes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    tops[i] = upkeep_.top.floor(keys[i]);
    hashes[i] = Keys::hash16(keys[i]);
    if (tops[i].leaf != nullptr) tops[i].leaf->prefetch();
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Leaf<K>* leaf = tops[i].leaf;
    if (leaf == nullptr) continue;
    const std::uint64_t slots = leaf->taken_for(fingerprint_of(hashes[i])) & leaf->visible_slots();
    if (slots != 0) __builtin_prefetch(&leaf->block().entries[__builtin_ctzll(slots)]);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    LeafRef<K> place = upkeep_.locator.locate_at(tops[i], keys[i]);
    const Lookup found = find_durable(place, keys[i], hashes[i]);
    out[i] = found.slot < 0 ? std::nullopt : std::optional(found.value);
  }
}

}  // namespace perdix::detail::index::nbtree
