// All pairs, in the order of their hashes: segment by segment, and in each first the pairs of its
// collecting logs, then those of its buckets. Pairs move from logs to buckets, so a pair that is
// present all the time is seen. Pairs that were shown from the logs are skipped in the buckets. A
// segment that splits during the call has been seen up to a bucket, and its halves are seen from
// that bucket on. If the index gets more logs during the call, those are shown next that have the
// hashes which come next.
//
// Pairs of a bucket are copied under a guard and shown without one (index/common/batch.h), in the
// order of their hashes. So a large bucket can be shown in parts, also if its segment splits
// between two of them: what was shown lies below one hash in both halves.
#pragma once

#include <algorithm>
#include <functional>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/elimda/store.h"
#include "pool/as_errors.h"

namespace perdix::detail::index::elimda {

/// One visit of all pairs.
template <class K>
class Walk {
 public:
  explicit Walk(const Store<K>& store) : store_(store) {}

  /// for_each() of what `values` makes of the words of values.
  template <class Values>
  void show_all(const PairSink<K>& show, const Values& values) {
    EachBatch batch;
    for (bool more = true; more;) {
      more = pool::as_errors(store_.pool, [&] { return read_batch(batch, values); });
      if (!show(batch.copied()).all) return;
    }
  }

 private:
  using Key = View<K>;

  static constexpr unsigned kShownAtOnce = 256;

  /// read_batch() sorts pairs by their hashes, so that no key may be like the one before it.
  using EachBatch = Batch<K, kShownAtOnce, std::not_equal_to<>>;

  /// A pair, with its hash at hand. Pairs of one bucket are shown in this order.
  struct Hashed {
    KeyHash hash;
    Key key;
    Word value;

    friend bool operator<(const Hashed& a, const Hashed& b) {
      return a.hash.bits != b.hash.bits ? a.hash.bits < b.hash.bits : a.key < b.key;
    }
  };

  /// Sorts pairs, and leaves of those with one key the first.
  static void keep_first_of_each_key(std::vector<Hashed>& pairs) {
    std::stable_sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end(),
                            [](const auto& a, const auto& b) { return a.key == b.key; }),
                pairs.end());
  }

  /// The pairs of a bucket, of each key the first, in their order.
  std::vector<Hashed> pairs_of_bucket(const Place& place) const {
    std::vector<Hashed> pairs;
    const auto add = [&](Key key, Word value) {
      pairs.push_back({store_.words.hash_of(key), key, value});
    };
    const Bucket& bucket = *place.bucket;
    std::vector<std::uint16_t> entries;
    entries.reserve(bucket.entries());
    for (unsigned i = 0; i < bucket.entries(); ++i) entries.push_back(bucket.entry(i));
    std::sort(entries.begin(), entries.end());  // by slots
    const auto add_p = [&](unsigned slot) {
      const Pair& pair = store_.table.pair(place, slot);
      add(store_.words.keys().view(pm::load(pair.key)), pm::load(pair.value));
      store_.ensure_durable(place, pair);
    };
    for (const std::uint16_t entry : entries) {
      if (!store_.code.killed(entry)) add_p(store_.code.slot(entry));
    }
    for (unsigned i = 0; i < bucket.recent_count(); ++i) {
      if (bucket.recent_live(i)) add_p(bucket.recent_slot(i));
    }
    for (unsigned i = 0; i < bucket.d_count(); ++i) {
      if (bucket.d_live(i)) add(store_.words.keys().view(bucket.d_key(i)), bucket.d_value(i));
    }
    keep_first_of_each_key(pairs);
    return pairs;
  }

  /// The keys of a log that a segment is responsible for, and what lookups find of them.
  std::vector<Hashed> pairs_of_log(CollectingLog log) const {
    std::vector<Hashed> pairs;
    const auto add = [&](Word word) {
      const Key key = store_.words.keys().view(word);
      const KeyHash hash = store_.words.hash_of(key);
      if (!within(hash)) return;
      if (const Found found = store_.find(key, hash)) pairs.push_back({hash, key, found.value});
    };
    const LogLine& line = log.line();
    for (unsigned i = 0; i < store_.shape.unit_pairs; ++i) {
      if (line.print(i) != 0) add(pm::load(log.pairs()[i].key));
    }
    const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
    const auto add_ref = [&](BackupRef ref) { add(pm::load(store_.backup.pair(ref).key)); };
    if (in_flight != 0) store_.backup.for_each_pair(in_flight - 1, add_ref);
    keep_first_of_each_key(pairs);
    return pairs;
  }

  void begin_segment() {
    end_ = store_.dram.segment_of({first_}).next_hash();
    at_ = first_;
    bucket_ = 0;
    begun_ = true;
    in_logs_ = store_.logs.set() != nullptr;
    of_logs_.clear();
  }

  /// Whether a key of that hash belongs to the part that is being shown, and comes next or later.
  /// Its segment may have more, since it was joined with others.
  bool within(KeyHash hash) const { return hash.bits >= at_ && hash.bits <= end_ - 1; }

  /// Goes on to the next log, or part of a segment; false if there is none. What has been shown is
  /// the log of these that has the hash `at`, or else `segment`.
  bool advance(const LogSet* logs, const Segment& segment) {
    from_.reset();
    if (in_logs_) {
      at_ = logs->next_hash(at_);
      if (at_ - 1 < end_ - 1) return true;  // 0 is behind all others
      in_logs_ = false;
      at_ = first_;
      std::sort(of_logs_.begin(), of_logs_.end());
      return true;
    }
    if (segment.next_hash() - 1 < end_ - 1) {  // 0 is behind all others
      at_ = segment.next_hash();
      return true;
    }
    at_ = first_;
    if (++bucket_ < store_.shape.buckets) return true;
    first_ = end_;
    begun_ = false;
    return end_ != 0;
  }

  /// Fills a batch with the next pairs; false if nothing comes after it.
  template <class Values>
  bool read_batch(EachBatch& batch, const Values& values) {
    const epoch::Guard guard;
    if (!begun_) begin_segment();
    Segment& segment = store_.dram.segment_of({at_});
    const LogSet* logs = store_.logs.set();
    const std::vector<Hashed> pairs =
        in_logs_ ? pairs_of_log(logs->log_of({at_}))
                 : pairs_of_bucket({&segment, bucket_, &store_.bucket_of(segment, bucket_)});
    batch.clear();
    std::size_t next = 0;
    const std::size_t known = of_logs_.size();
    for (unsigned added = 0; next < pairs.size() && added < kShownAtOnce; ++next) {
      const auto& [hash, key, value] = pairs[next];
      if (!within(hash)) continue;
      if (from_ && hash.bits == at_ && key < Key(*from_)) continue;
      if (in_logs_)
        of_logs_.emplace_back(key);
      else if (std::binary_search(of_logs_.begin(), of_logs_.end(), key))
        continue;
      batch.add(key, value);
      ++added;
    }
    batch.copy_pairs(store_.pool, values, kShownAtOnce);
    // The others are shown later: from the log, or from their bucket if they have left the log.
    if (in_logs_) of_logs_.resize(known + batch.size());
    store_.pool.require_usable();  // what was read may have been there before a sync failed
    if (batch.complete() && next == pairs.size()) return advance(logs, segment);
    from_ = K(batch.complete() ? pairs[next].key : batch.next_key());
    at_ = store_.words.hash_of(Key(*from_)).bits;
    return true;
  }

  const Store<K>& store_;
  std::uint64_t first_ = 0;  // hash where the segment begins that is being shown
  std::uint64_t end_ = 0;    // hash where it ended when it was begun; 0: the last one
  std::uint64_t at_ = 0;     // hash of what is next, of this bucket or log
  unsigned bucket_ = 0;
  bool begun_ = false;      // the segment
  bool in_logs_ = false;    // a log is next
  std::optional<K> from_;   // of keys whose hash is `at_`, those below it have been shown
  std::vector<K> of_logs_;  // keys that were shown of its logs; sorted once it is complete
};

}  // namespace perdix::detail::index::elimda
