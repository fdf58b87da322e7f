// Reads all pairs in batches: first that of the root block, then the others in the order of their
// hashes, segment by segment. Pairs of a segment are copied under a guard and shown without one
// (index/common/batch.h). So a segment can be shown in parts, also if it splits between two of
// them, or is joined with another: what was shown lies below one hash.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "index/cceh/search.h"
#include "index/common/batch.h"

namespace perdix::detail::index::cceh {

inline constexpr unsigned kShownAtOnce = 256;

/// PairReader sorts pairs by their hashes, so that no key may be like the one before it.
template <class K>
using EachBatch = Batch<K, kShownAtOnce, std::not_equal_to<>>;

/// How far one call has come. Not thread-safe.
template <class K>
class PairReader {
 public:
  using Key = View<K>;

  explicit PairReader(const SegmentSearch<K>& search) : search_(search) {}

  /// Fills a batch with the next pairs; false if nothing comes after it.
  bool read(EachBatch<K>& batch) {
    const Segments<K>& segments = search_.segments();
    const epoch::Guard guard;
    batch.clear();
    if (zero_is_next_) {
      zero_is_next_ = false;
      if (const std::optional<Word> value = search_.find_zero()) batch.add(Key{}, *value);
      batch.copy_pairs(segments.pool(), segments.values(), kShownAtOnce);
      return true;
    }
    const SeenSegment seen = collect();
    const std::vector<Hashed> pairs = sorted();
    const std::size_t shown = std::min<std::size_t>(pairs.size(), kShownAtOnce);
    for (std::size_t i = 0; i < shown; ++i) batch.add(pairs[i].key, pairs[i].value);
    batch.copy_pairs(segments.pool(), segments.values(), kShownAtOnce);
    if (batch.size() == pairs.size()) {
      from_.reset();
      at_.bits = seen.range.end();
      return at_.bits != 0;
    }
    at_ = pairs[batch.size()].hash;
    from_ = K(pairs[batch.size()].key);
    return true;
  }

 private:
  struct Hashed {
    KeyHash hash;
    Key key;
    Word value;
  };

  /// Collects the pairs of the next segment, as they were at one moment.
  SeenSegment collect() {
    for (;;) {
      const SeenSegment seen = search_.locate(at_);
      search_.collect(seen, at_, pairs_);
      if (seen.valid()) return seen;
    }
  }

  /// Those that were collected and have not been shown, in the order of their hashes and keys.
  std::vector<Hashed> sorted() const {
    std::vector<Hashed> pairs;
    pairs.reserve(pairs_.size());
    for (const Pair& pair : pairs_) {
      const Key key = search_.segments().keys().view(pair.key);
      const KeyHash hash = search_.segments().hash_of(key);
      if (from_ && hash.bits == at_.bits && key < Key(*from_)) continue;
      pairs.push_back({hash, key, pair.value});
    }
    std::sort(pairs.begin(), pairs.end(), [](const Hashed& a, const Hashed& b) {
      return a.hash.bits != b.hash.bits ? a.hash.bits < b.hash.bits : a.key < b.key;
    });
    return pairs;
  }

  const SegmentSearch<K>& search_;
  bool zero_is_next_ = true;
  KeyHash at_;               // of what is next
  std::optional<K> from_;    // of keys whose hash is `at_`, those below it have been shown
  std::vector<Pair> pairs_;  // of the segment; used again
};

}  // namespace perdix::detail::index::cceh
