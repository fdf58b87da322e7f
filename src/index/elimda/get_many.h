// Batches of lookups. A lookup waits for memory most of its time, so the keys of a group take each
// step together, and their waits overlap.
#pragma once

#include <array>

#include "index/common/groups.h"
#include "index/elimda/search.h"

namespace perdix::detail::index::elimda {

/// One step for each key in turn, so that their waits for memory overlap: directory, bucket,
/// fingerprints, pair.
template <class K>
void WordIndex<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  std::array<KeyHash, kGroup> hashes;
  std::array<Place, kGroup> places;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    hashes[i] = hash_of(keys[i]);
    Segment& segment = dram_.segment_of(hashes[i]);
    places[i] = {&segment, hashes[i].bucket(shape_.buckets), nullptr};
    __builtin_prefetch(&segment.slot(places[i].at));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    places[i].bucket = &bucket_of(*places[i].segment, places[i].at);
    __builtin_prefetch(places[i].bucket);
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    places[i].bucket->prefetch_group(code_, hashes[i].signature());
  for (std::size_t i = 0; i < keys.size(); ++i) prefetch_pair(places[i], hashes[i]);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Found found = find_from(places[i], keys[i], hashes[i]);
    out[i] = found ? std::optional<Word>(found.value) : std::nullopt;
  }
}

/// Asks for the first pair of the P-bucket that may be of that hash, or for the log.
template <class K>
void WordIndex<K>::prefetch_pair(const Place& place, KeyHash hash) const {
  const bool any =
      place.bucket->find_entry(code_, hash.signature(), [&](unsigned, std::uint16_t entry) {
        __builtin_prefetch(&p_pair(place, code_.slot(entry)));
        return true;
      });
  const LogSet* logs = logs_.set();
  if (!any && logs != nullptr) __builtin_prefetch(&logs->log_of(hash).line());
}

}  // namespace perdix::detail::index::elimda
