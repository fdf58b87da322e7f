// Verification of the invariants that layout.h states (E1-E8), the list of all blocks, and sizes.
#pragma once

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <vector>

#include "index/common/problems.h"
#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

/// What check() has found so far.
template <class K>
struct WordIndex<K>::Checked {
  CheckReport report;
  std::vector<std::uint8_t> in_d;  ///< pairs of the backup log that D-buckets refer to, or flights

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    Problems(report).expect(holds, format, std::forward<Args>(args)...);
  }
};

/// A pair that counts: its strings are there (E8), and its hash is its word's.
template <class K>
bool WordIndex<K>::check_pair(const Pair& pair, Checked& checked) const {
  const bool sound = keys_.sound(pair.key) && codec_.sound(pair.value);
  checked.expect(sound, "a pair refers to a string that is not there (E8): {:#x}, {:#x}", pair.key,
                 pair.value);
  if (!sound) return false;
  checked.expect(hash_of_word(pair.key).signature() == signature_of(pair.key),
                 "a key has another one's signature: {:#x}", pair.key);
  checked.report.blocks += Keys::blobs(pair.key) + codec_.blobs(pair.value);
  return true;
}

template <class K>
void WordIndex<K>::check_bucket(const Place& place, Checked& checked) const {
  const Bucket& bucket = *place.bucket;
  const auto in_place = [&](const Pair& pair) {
    if (!check_pair(pair, checked)) return;
    const KeyHash hash = hash_of_word(pair.key);
    checked.expect(hash.prefix(place.segment->depth) == place.segment->prefix &&
                       hash.bucket(shape_.buckets) == place.at,
                   "segment {:#x}: bucket {} has a pair that belongs elsewhere (E3)",
                   place.segment->offset, place.at);
  };
  unsigned live = 0, entries = 0;
  for (unsigned slot = 0; slot < shape_.p_pairs; ++slot) {
    if (!table_.live(place.segment->offset, place.at, slot)) continue;
    ++live;
    in_place(p_pair(place, slot));
    checked.expect(slot < bucket.units() * shape_.unit_pairs,
                   "segment {:#x}: bucket {} has a pair behind its units", place.segment->offset,
                   place.at);
  }
  for (unsigned i = 0; i < bucket.entries(); ++i) {
    const std::uint16_t entry = bucket.entry(i);
    if (code_.killed(entry)) continue;
    ++entries;
    checked.expect(table_.live(place.segment->offset, place.at, code_.slot(entry)),
                   "segment {:#x}: bucket {} has a fingerprint of a pair that does not count",
                   place.segment->offset, place.at);
  }
  checked.expect(live == entries, "segment {:#x}: bucket {} has {} pairs and {} fingerprints",
                 place.segment->offset, place.at, live, entries);
  for (unsigned i = 0; i < bucket.d_count(); ++i) {
    if (!bucket.d_live(i)) continue;
    const BackupRef ref = bucket.d_ref(i);
    const Pair pair{bucket.d_key(i), bucket.d_value(i)};
    in_place(pair);
    checked.expect(ref < checked.in_d.size() && checked.in_d[ref]++ == 0 && backup_.counts(ref) &&
                       pm::load(backup_.pair(ref).key) == pair.key &&
                       pm::load(backup_.pair(ref).value) == pair.value,
                   "segment {:#x}: a D pair of bucket {} is not in the backup log (E4)",
                   place.segment->offset, place.at);
  }
}

/// Each pair that counts in the backup log is a D pair or on its way to a D-bucket; each that
/// counts in a log lies in its log.
template <class K>
void WordIndex<K>::check_logs(Checked& checked) const {
  for_each_in_flight([&](BackupRef ref) {
    checked.expect(checked.in_d[ref]++ == 0, "pair {} of the backup log is in flight twice", ref);
    (void)check_pair(backup_.pair(ref), checked);
  });
  for (Unit unit = 0; unit < backup_.units(); ++unit) {
    if (backup_.gone(unit)) continue;
    unsigned counting = 0;
    for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
      const BackupRef ref = backup_.ref(unit, i);
      if (!backup_.counts(ref)) continue;
      ++counting;
      checked.expect(checked.in_d[ref] != 0, "backup unit {}: pair {} is in no D-bucket (E4)", unit,
                     i);
    }
    const unsigned uses = backup_.counted(unit);  // by pairs that count, and by one that fills it
    checked.expect(uses == counting || uses == counting + 1,
                   "backup unit {}: {} pairs count, and it has {} uses", unit, counting, uses);
  }
  for_each_log([&](const LogSet& logs, CollectingLog log) {
    const LogLine& line = log.line();
    checked.expect(LogWord::unpack(pm::load(log.word())).count == line.count,
                   "collecting log {}: another number of pairs in DRAM (E5)", log.name());
    for (unsigned i = 0; i < line.count; ++i) {
      checked.expect(log.dead(i) == (line.print(i) == 0),
                     "collecting log {}: pair {} is not as its fingerprint (E5)", log.name(), i);
      if (log.dead(i)) continue;
      const Pair& pair = log.pairs()[i];
      if (!check_pair(pair, checked)) continue;
      checked.expect(logs.log_of(hash_of_word(pair.key)).name() == log.name(),
                     "collecting log {}: pair {} belongs to another (E5)", log.name(), i);
    }
  });
}

template <class K>
CheckReport WordIndex<K>::check() const {
  Checked checked;
  try {
    require_resumed();
    const epoch::Guard guard;
    checked.in_d.resize(std::size_t{backup_.units()} * shape_.unit_pairs);
    std::uint64_t leaders = 0, segments = 0;
    table_.for_each_leader([&](std::uint64_t, Reference) { ++leaders; });
    dram_.for_each_segment([&](Segment& segment) {
      ++segments;
      checked.expect(pool_.allocator().validate_block(segment.offset, shape_.segment_bytes()),
                     "segment {:#x} lies in free memory (E8)", segment.offset);
      for (unsigned i = 0; i < shape_.buckets; ++i)
        check_bucket({&segment, i, &bucket_of(segment, i)}, checked);
    });
    checked.expect(leaders == segments, "{} segments in PM, {} in DRAM (E2)", leaders, segments);
    check_logs(checked);
    for_each_own_block([&](pm::Offset) { ++checked.report.blocks; });
    checked.report.pairs = count_keys();
    checked.expect(checked.report.pairs == size(), "{} keys are counted, {} are there", size(),
                   checked.report.pairs);
  } catch (const Error& error) {
    checked.expect(false, "{}", error.what());
  }
  return checked.report;
}

/// The blocks that hold no strings.
template <class K>
template <class Visit>
void WordIndex<K>::for_each_own_block(Visit visit) const {
  visit(pool_.offset(&root_));
  if (const pm::Offset area = logs_.area().offset; area != pm::kNull) visit(area);
  backup_.for_each_block(visit);
  table_.for_each_block(visit);
}

/// Calls visit(logs, log) for all collecting logs.
template <class K>
template <class Visit>
void WordIndex<K>::for_each_log(Visit visit) const {
  const LogSet* logs = logs_.set();
  if (logs == nullptr) return;
  logs->for_each([&](CollectingLog log) { visit(*logs, log); });
}

/// Calls visit(pair) for all that count in the logs and in buckets that are warm, duplicates too.
/// While writers are active that is a good guess.
template <class K>
template <class Visit>
void WordIndex<K>::for_each_warm_pair(Visit visit) const {
  dram_.for_each_segment([&](Segment& segment) {
    for (unsigned at = 0; at < shape_.buckets; ++at) {
      const Place place{&segment, at, segment.slot(at).bucket()};
      if (place.bucket == nullptr) continue;
      for (unsigned i = 0; i < place.bucket->entries(); ++i) {
        const std::uint16_t entry = place.bucket->entry(i);
        if (!code_.killed(entry)) visit(p_pair(place, code_.slot(entry)));
      }
      for (unsigned i = 0; i < place.bucket->d_count(); ++i) {
        if (place.bucket->d_live(i)) visit(Pair{place.bucket->d_key(i), place.bucket->d_value(i)});
      }
    }
  });
  for_each_log([&](const LogSet&, CollectingLog log) {
    for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
      if (log.line().print(i) != 0) visit(log.pairs()[i]);
    }
  });
}

/// Calls visit(ref) for pairs of the backup log that a flush which failed half-way has left on
/// their way. Writers are idle.
template <class K>
template <class Visit>
void WordIndex<K>::for_each_in_flight(Visit visit) const {
  for_each_log([&](const LogSet&, CollectingLog log) {
    const LogLine& line = log.line();
    const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
    for (unsigned i = line.flushed; in_flight != 0 && i < shape_.unit_pairs; ++i) {
      const BackupRef ref = backup_.ref(in_flight - 1, i);
      if (backup_.counts(ref)) visit(ref);
    }
  });
}

template <class K>
void WordIndex<K>::for_each_block(const BlockVisitor& visit) const {
  require_resumed();
  const epoch::Guard guard;
  for_each_own_block(visit);
  const auto visit_blobs = [&](const Pair& pair) {
    if (Keys::blobs(pair.key) != 0) visit(blob_offset(pair.key));
    if (codec_.blobs(pair.value) != 0) visit(blob_offset(pair.value));
  };
  for_each_warm_pair(visit_blobs);
  for_each_in_flight([&](BackupRef ref) { visit_blobs(backup_.pair(ref)); });
}

template <class K>
std::uint64_t WordIndex<K>::count_keys() const {
  std::uint64_t keys = 0;
  const auto add = [&](const CopiedPairs<K>& pairs) {
    keys += pairs.pairs.size();
    return Taken{pairs.pairs.size(), true};
  };
  show_all(add, ValueCodec(pool_, Kind::u64));  // words will do
  return keys;
}

template <class K>
std::uint64_t WordIndex<K>::size() const {
  if (count_state_.load(std::memory_order_acquire) != CountState::known) {
    const std::lock_guard lock(counting_);
    if (count_state_.load(std::memory_order_acquire) != CountState::known) return count();
  }
  return static_cast<std::uint64_t>(pairs_at_count_.load() + added_.sum() - removed_.sum());
}

/// Counts, and remembers the count unless a writer was active during the call. One thread at a
/// time.
template <class K>
std::uint64_t WordIndex<K>::count() const {
  count_state_.store(CountState::counting);  // an insert_ahead from now on takes that back
  const std::int64_t added = added_.sum(), removed = removed_.sum(), begun = begun_.sum();
  const std::uint64_t keys = count_keys();
  if (begun != added + removed || begun_.sum() != begun) return keys;
  pairs_at_count_.store(static_cast<std::int64_t>(keys) - (added - removed));
  CountState counting = CountState::counting;
  count_state_.compare_exchange_strong(counting, CountState::known);
  return keys;
}

/// Of the segments that are warm. Duplicates count, unless the keys were counted (size()).
template <class K>
IndexStats WordIndex<K>::stats() const {
  IndexStats stats;
  const epoch::Guard guard;
  std::uint64_t segments = 0, warm = 0;
  dram_.for_each_segment([&](const Segment& segment) {
    ++segments;
    bool all = true;
    for (unsigned at = 0; at < shape_.buckets; ++at) {
      const Bucket* bucket = segment.slot(at).bucket();
      all &= bucket != nullptr;
    }
    warm += all;
  });
  std::int64_t blob_bytes = 0;
  std::uint64_t in_logs = 0;  // the rest of the logs' area is not the pairs'
  for_each_log([&](const LogSet&, CollectingLog log) {
    in_logs += LogWord::unpack(pm::load(log.word())).count;
  });
  for_each_warm_pair([&](const Pair& pair) {
    ++stats.pairs;
    if (!all_inline())
      blob_bytes += keys_.footprint(pm::load(pair.key)) + codec_.footprint(pm::load(pair.value));
  });
  if (count_state_.load() == CountState::known) stats.pairs = size();
  stats.leaves = segments * shape_.buckets;
  stats.pm_bytes = segments * shape_.segment_bytes() + backup_.chunks() * kChunkBytes +
                   (std::uint64_t{8} << table_.directory().depth) + in_logs * sizeof(Pair) +
                   static_cast<std::uint64_t>(blob_bytes);
  stats.dram_bytes = sizeof *this + arena_.bytes_in_use() + dram_.directory_bytes() +
                     backup_.bytes() + (logs_.set() != nullptr ? logs_.set()->bytes() : 0);
  stats.load_factor =
      static_cast<double>(stats.pairs) / static_cast<double>(stats.leaves * shape_.p_pairs);
  stats.relocations = static_cast<std::uint64_t>(relocations_.sum());
  stats.recovery_seconds = recovery_seconds_;
  stats.resumed = static_cast<double>(warm) / static_cast<double>(segments);
  stats.resumption_seconds = resumption_.seconds();
  return stats;
}

}  // namespace perdix::detail::index::elimda
