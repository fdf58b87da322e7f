// Visits all pairs: first that of the root block, then the others in the order of their hashes,
// segment by segment. Pairs of a segment are copied under a guard and shown without one
// (index/common/batch.h). So a segment can be shown in parts, also if it splits between two of
// them, or is joined with another: what was shown lies below one hash.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "index/cceh/cceh.h"
#include "index/cceh/search.h"
#include "index/common/batch.h"
#include "pool/as_errors.h"

namespace perdix::detail::index::cceh {

inline constexpr unsigned kShownAtOnce = 256;

/// read_batch() sorts pairs by their hashes, so that no key may be like the one before it.
template <class K>
struct WordTable<K>::EachBatch : Batch<K, kShownAtOnce, std::not_equal_to<>> {};

/// How far a call has come.
template <class K>
struct WordTable<K>::Cursor {
  bool zero_is_next = true;
  KeyHash at;               ///< of what is next
  std::optional<K> from;    ///< of keys whose hash is `at`, those below it have been shown
  std::vector<Pair> pairs;  ///< of the segment; used again
};

/// Fills a batch with the next pairs; false if nothing comes after it.
template <class K>
bool WordTable<K>::read_batch(Cursor& cursor, EachBatch& batch) const {
  const epoch::Guard guard;
  batch.clear();
  if (cursor.zero_is_next) {
    cursor.zero_is_next = false;
    if (const std::optional<Word> value = find_zero()) batch.add(Key{}, *value);
    batch.copy_pairs(pool_, codec_, kShownAtOnce);
    return true;
  }
  Seen seen;
  do {
    seen = locate(cursor.at);
    collect(seen, cursor.at, cursor.pairs);
  } while (!seen.valid());

  struct Hashed {
    KeyHash hash;
    Key key;
    Word value;
  };
  std::vector<Hashed> pairs;
  pairs.reserve(cursor.pairs.size());
  for (const Pair& pair : cursor.pairs) {
    const Key key = keys_.view(pair.key);
    const KeyHash hash = hash_of(key);
    if (cursor.from && hash.bits == cursor.at.bits && key < Key(*cursor.from)) continue;
    pairs.push_back({hash, key, pair.value});
  }
  std::sort(pairs.begin(), pairs.end(), [](const Hashed& a, const Hashed& b) {
    return a.hash.bits != b.hash.bits ? a.hash.bits < b.hash.bits : a.key < b.key;
  });
  const std::size_t shown = std::min<std::size_t>(pairs.size(), kShownAtOnce);
  for (std::size_t i = 0; i < shown; ++i) batch.add(pairs[i].key, pairs[i].value);
  batch.copy_pairs(pool_, codec_, kShownAtOnce);
  if (batch.size() == pairs.size()) {
    cursor.from.reset();
    cursor.at.bits = seen.range.end();
    return cursor.at.bits != 0;
  }
  cursor.at = pairs[batch.size()].hash;
  cursor.from = K(pairs[batch.size()].key);
  return true;
}

template <class K>
void WordTable<K>::for_each(const PairSink<K>& show) const {
  Cursor cursor;
  EachBatch batch;
  for (bool more = true; more;) {
    more = pool::as_errors(pool_, [&] { return read_batch(cursor, batch); });
    if (!show(batch.copied()).all) return;
  }
}

}  // namespace perdix::detail::index::cceh
