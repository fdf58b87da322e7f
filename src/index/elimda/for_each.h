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
#include <string>
#include <utility>
#include <vector>

#include "index/common/batch.h"
#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

/// A pair, with its hash at hand. Pairs of one bucket are shown in this order.
template <class K>
struct Hashed {
  KeyHash hash;
  View<K> key;
  Word value;

  friend bool operator<(const Hashed& a, const Hashed& b) {
    return a.hash.bits != b.hash.bits ? a.hash.bits < b.hash.bits : a.key < b.key;
  }
};

/// Sorts pairs, and leaves of those with one key the first.
template <class K>
void keep_first_of_each_key(std::vector<Hashed<K>>& pairs) {
  std::stable_sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end(),
                          [](const auto& a, const auto& b) { return a.key == b.key; }),
              pairs.end());
}

inline constexpr unsigned kShownAtOnce = 256;

/// read_batch() sorts pairs by their hashes, so that no key may be like the one before it.
template <class K>
struct WordIndex<K>::EachBatch : Batch<K, kShownAtOnce, std::not_equal_to<>> {};

/// How far a call has come.
template <class K>
struct WordIndex<K>::Cursor {
  std::uint64_t first = 0;  ///< hash where the segment begins that is being shown
  std::uint64_t end = 0;    ///< hash where it ended when it was begun; 0: the last one
  std::uint64_t at = 0;     ///< hash of what is next, of this bucket or log
  unsigned bucket = 0;
  bool begun = false;      ///< the segment
  bool in_logs = false;    ///< a log is next
  std::optional<K> from;   ///< of keys whose hash is `at`, those below it have been shown
  std::vector<K> of_logs;  ///< keys that were shown of its logs; sorted once it is complete
};

/// The pairs of a bucket, of each key the first, in their order.
template <class K>
auto WordIndex<K>::pairs_of_bucket(const Place& place) const -> std::vector<Hashed<K>> {
  std::vector<Hashed<K>> pairs;
  const auto add = [&](Key key, Word value) { pairs.push_back({hash_of(key), key, value}); };
  const Bucket& bucket = *place.bucket;
  std::vector<std::uint16_t> entries;
  entries.reserve(bucket.entries());
  for (unsigned i = 0; i < bucket.entries(); ++i) entries.push_back(bucket.entry(i));
  std::sort(entries.begin(), entries.end());  // by slots
  for (const std::uint16_t entry : entries) {
    if (code_.killed(entry)) continue;
    const Pair& pair = p_pair(place, code_.slot(entry));
    add(keys_.view(pm::load(pair.key)), pm::load(pair.value));
    // A writer may be about to make the value durable; it must not be seen before.
    if (volatile_caches_ && bucket.has_unpersisted()) pm().persist(&pair.value, sizeof pair.value);
  }
  for (unsigned i = 0; i < bucket.d_count(); ++i) {
    if (bucket.d_live(i)) add(keys_.view(bucket.d_key(i)), bucket.d_value(i));
  }
  keep_first_of_each_key(pairs);
  return pairs;
}

/// The keys of a log that a segment is responsible for, and what lookups find of them.
template <class K>
auto WordIndex<K>::pairs_of_log(CollectingLog log, const Cursor& cursor) const
    -> std::vector<Hashed<K>> {
  std::vector<Hashed<K>> pairs;
  const auto add = [&](Word word) {
    const Key key = keys_.view(word);
    const KeyHash hash = hash_of(key);
    if (!within(cursor, hash)) return;
    if (const Found found = find(key, hash)) pairs.push_back({hash, key, found.value});
  };
  const LogLine& line = log.line();
  for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
    if (line.print(i) != 0) add(pm::load(log.pairs()[i].key));
  }
  const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
  for (unsigned i = 0; in_flight != 0 && i < shape_.unit_pairs; ++i) {
    const BackupRef ref = backup_.ref(in_flight - 1, i);
    if (backup_.counts(ref)) add(pm::load(backup_.pair(ref).key));
  }
  keep_first_of_each_key(pairs);
  return pairs;
}

template <class K>
void WordIndex<K>::begin_segment(Cursor& cursor) const {
  cursor.end = dram_.segment_of({cursor.first}).next_hash();
  cursor.at = cursor.first;
  cursor.bucket = 0;
  cursor.begun = true;
  cursor.in_logs = logs_.set() != nullptr;
  cursor.of_logs.clear();
}

/// Whether a key of that hash belongs to the part that is being shown, and comes next or later. Its
/// segment may have more, since it was joined with others.
template <class K>
bool WordIndex<K>::within(const Cursor& cursor, KeyHash hash) {
  return hash.bits >= cursor.at && hash.bits <= cursor.end - 1;
}

/// Goes on to the next log, or part of a segment; false if there is none. What has been shown is
/// the log of these that has the hash `at`, or else `segment`.
template <class K>
bool WordIndex<K>::advance(Cursor& cursor, const LogSet* logs, const Segment& segment) const {
  cursor.from.reset();
  if (cursor.in_logs) {
    cursor.at = logs->next_hash(cursor.at);
    if (cursor.at - 1 < cursor.end - 1) return true;  // 0 is behind all others
    cursor.in_logs = false;
    cursor.at = cursor.first;
    std::sort(cursor.of_logs.begin(), cursor.of_logs.end());
    return true;
  }
  if (segment.next_hash() - 1 < cursor.end - 1) {  // 0 is behind all others
    cursor.at = segment.next_hash();
    return true;
  }
  cursor.at = cursor.first;
  if (++cursor.bucket < shape_.buckets) return true;
  cursor.first = cursor.end;
  cursor.begun = false;
  return cursor.end != 0;
}

/// Fills a batch with the next pairs; false if nothing comes after it.
template <class K>
template <class Values>
bool WordIndex<K>::read_batch(Cursor& cursor, EachBatch& batch, const Values& values) const {
  const epoch::Guard guard;
  if (!cursor.begun) begin_segment(cursor);
  Segment& segment = dram_.segment_of({cursor.at});
  const LogSet* logs = logs_.set();
  const std::vector<Hashed<K>> pairs =
      cursor.in_logs
          ? pairs_of_log(logs->log_of({cursor.at}), cursor)
          : pairs_of_bucket({&segment, cursor.bucket, &bucket_of(segment, cursor.bucket)});
  batch.clear();
  std::size_t next = 0;
  for (unsigned added = 0; next < pairs.size() && added < kShownAtOnce; ++next) {
    const auto& [hash, key, value] = pairs[next];
    if (!within(cursor, hash)) continue;
    if (cursor.from && hash.bits == cursor.at && key < Key(*cursor.from)) continue;
    if (cursor.in_logs)
      cursor.of_logs.emplace_back(key);
    else if (std::binary_search(cursor.of_logs.begin(), cursor.of_logs.end(), key))
      continue;
    batch.add(key, value);
    ++added;
  }
  batch.copy_pairs(pool_, values, kShownAtOnce);
  pool_.require_usable();  // what was read may have been there before a sync failed
  if (batch.complete() && next == pairs.size()) return advance(cursor, logs, segment);
  cursor.from = K(batch.complete() ? pairs[next].key : batch.next_key());
  cursor.at = hash_of(Key(*cursor.from)).bits;
  return true;
}

/// for_each() of what `values` makes of the words of values.
template <class K>
template <class Values>
void WordIndex<K>::show_all(const PairSink<K>& show, const Values& values) const {
  Cursor cursor;
  EachBatch batch;
  for (bool more = true; more;) {
    more = pool::as_errors(pool_, [&] { return read_batch(cursor, batch, values); });
    if (!show(batch.copied()).all) return;
  }
}

template <class K>
void WordIndex<K>::for_each(const PairSink<K>& show) const {
  show_all(show, codec_);
}

}  // namespace perdix::detail::index::elimda
