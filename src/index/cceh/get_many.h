// Batches of lookups. A lookup waits for memory most of its time, so the keys of a group take each
// step together, and their waits overlap.
#pragma once

#include <array>

#include "index/cceh/search.h"
#include "index/common/groups.h"

namespace perdix::detail::index::cceh {

/// Locates the segments of all keys and prefetches a bucket of each, and then reads the buckets.
template <class K>
void WordTable<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  std::array<KeyHash, kGroup> hashes;
  std::array<Seen, kGroup> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    hashes[i] = hash_of(keys[i]);
    seen[i] = see(keys[i], hashes[i]);
    if (seen[i].entry.offset == pm::kNull) continue;
    const unsigned bucket = hashes[i].bucket(shape_.buckets);
    __builtin_prefetch(slots_of(seen[i].entry) + bucket * kBucketPairs);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) out[i] = find_from(seen[i], keys[i], hashes[i]);
}

}  // namespace perdix::detail::index::cceh
