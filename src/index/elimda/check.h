// Verification of the invariants that layout.h states (E1-E8), and sizes.
#pragma once

#include <perdix/types.h>

#include "index/common/codec.h"
#include "index/common/problems.h"
#include "index/elimda/owned.h"
#include "index/elimda/store.h"

namespace perdix::detail::index::elimda {

/// The pairs of an index that are in DRAM or in collecting logs. The caller is in an epoch::Guard.
template <class K>
class Census {
 public:
  explicit Census(const Store<K>& store) : store_(store) {}

  /// Calls visit(logs, log) for all collecting logs.
  template <class Visit>
  void for_each_log(Visit visit) const {
    const LogSet* logs = store_.logs.set();
    if (logs == nullptr) return;
    logs->for_each([&](CollectingLog log) { visit(*logs, log); });
  }

  /// Calls visit(pair) for all that count in the logs and in buckets that are warm, duplicates too.
  /// While writers are active that is a good guess.
  template <class Visit>
  void for_each_warm_pair(Visit visit) const {
    store_.dram.for_each_segment([&](Segment& segment) {
      for (unsigned at = 0; at < store_.shape.buckets; ++at) {
        const Place place{&segment, at, segment.slot(at).bucket()};
        if (place.bucket == nullptr) continue;
        for (unsigned i = 0; i < place.bucket->entries(); ++i) {
          const std::uint16_t entry = place.bucket->entry(i);
          if (!store_.code.killed(entry)) visit(store_.table.pair(place, store_.code.slot(entry)));
        }
        for (unsigned i = 0; i < place.bucket->recent_count(); ++i) {
          if (place.bucket->recent_live(i))
            visit(store_.table.pair(place, place.bucket->recent_slot(i)));
        }
        for (unsigned i = 0; i < place.bucket->d_count(); ++i) {
          if (place.bucket->d_live(i))
            visit(Pair{place.bucket->d_key(i), place.bucket->d_value(i)});
        }
      }
    });
    for_each_log([&](const LogSet&, CollectingLog log) {
      for (unsigned i = 0; i < store_.shape.unit_pairs; ++i) {
        if (log.line().print(i) != 0) visit(log.pairs()[i]);
      }
    });
  }

  /// Calls visit(ref) for pairs of the backup log that a flush which failed half-way has left on
  /// their way. Writers are idle.
  template <class Visit>
  void for_each_in_flight(Visit visit) const {
    for_each_log([&](const LogSet&, CollectingLog log) {
      const LogLine& line = log.line();
      const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
      for (unsigned i = line.flushed; in_flight != 0 && i < store_.shape.unit_pairs; ++i) {
        const BackupRef ref = store_.backup.ref(in_flight - 1, i);
        if (store_.backup.counts(ref)) visit(ref);
      }
    });
  }

  /// Of the segments that are warm; duplicates count. Without what only the index knows. Counts the
  /// blocks itself: the walk (owned.h) needs idle writers, and all segments warm.
  IndexStats stats() const {
    IndexStats stats;
    std::uint64_t segments = 0, warm = 0;
    store_.dram.for_each_segment([&](const Segment& segment) {
      ++segments;
      bool all = true;
      for (unsigned at = 0; at < store_.shape.buckets; ++at)
        all &= segment.slot(at).bucket() != nullptr;
      warm += all;
    });
    std::int64_t blob_bytes = 0;
    std::uint64_t in_logs = 0;  // the rest of the logs' area is not the pairs'
    for_each_log([&](const LogSet&, CollectingLog log) {
      in_logs += LogWord::unpack(pm::load(log.word())).count;
    });
    for_each_warm_pair([&](const Pair& pair) {
      ++stats.pairs;
      if (!store_.words.all_inline()) blob_bytes += store_.words.footprint(pair);
    });
    stats.leaves = segments * store_.shape.buckets;
    stats.pm_bytes = segments * store_.shape.segment_bytes() +
                     store_.backup.chunks() * kChunkBytes +
                     (std::uint64_t{8} << store_.table.directory().depth) + in_logs * sizeof(Pair) +
                     static_cast<std::uint64_t>(blob_bytes);
    const LogSet* logs = store_.logs.set();
    stats.dram_bytes = store_.arena.bytes_in_use() + store_.dram.directory_bytes() +
                       store_.backup.bytes() + (logs != nullptr ? logs->bytes() : 0);
    stats.resumed = static_cast<double>(warm) / static_cast<double>(segments);
    return stats;
  }

 private:
  const Store<K>& store_;
};

/// One verification. All segments are warm, writers are idle, and the caller is in an epoch::Guard.
template <class K>
class Inspection {
 public:
  explicit Inspection(const Store<K>& store) : store_(store), census_(store) {}

  /// Compares the layers with each other. Throws corrupt, bad_alloc.
  void run() {
    in_d_.resize(std::size_t{store_.backup.units()} * store_.shape.unit_pairs);
    std::uint64_t leaders = 0, segments = 0;
    store_.table.for_each_leader([&](std::uint64_t, Reference) { ++leaders; });
    store_.dram.for_each_segment([&](Segment& segment) {
      ++segments;
      for (unsigned i = 0; i < store_.shape.buckets; ++i)
        check_bucket({&segment, i, &store_.bucket_of(segment, i)});
    });
    expect(leaders == segments, "{} segments in PM, {} in DRAM (E2)", leaders, segments);
    check_logs();
  }

  void audit_blocks() {
    audit(store_.pool.allocator(), report_, "E8", [&](Owned& owned) { walk<K>(store_, owned); });
  }

  /// `there` keys were found, `counted` is what the index says.
  void expect_keys(std::uint64_t there, std::uint64_t counted) {
    report_.pairs = there;
    expect(there == counted, "{} keys are counted, {} are there", counted, there);
  }

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    Problems(report_).expect(holds, format, std::forward<Args>(args)...);
  }

  const CheckReport& report() const { return report_; }

 private:
  using Unit = BackupLog::Unit;

  /// A pair that counts: its strings are there (E8), and its hash is its word's.
  bool check_pair(const Pair& pair) {
    const bool sound = store_.words.sound(pair);
    expect(sound, "a pair refers to a string that is not there (E8): {:#x}, {:#x}", pair.key,
           pair.value);
    if (!sound) return false;
    expect(store_.words.hash_of_word(pair.key).signature() == store_.words.signature_of(pair.key),
           "a key has another one's signature: {:#x}", pair.key);
    return true;
  }

  void check_bucket(const Place& place) {
    const Bucket& bucket = *place.bucket;
    const auto expect_here = [&](bool holds, std::string_view what) {
      expect(holds, "segment {:#x}: bucket {} has {}", place.segment->offset, place.at, what);
    };
    const auto in_place = [&](const Pair& pair) {
      if (!check_pair(pair)) return;
      const KeyHash hash = store_.words.hash_of_word(pair.key);
      expect_here(hash.prefix(place.segment->depth) == place.segment->prefix &&
                      hash.bucket(store_.shape.buckets) == place.at,
                  "a pair that belongs elsewhere (E3)");
    };
    unsigned live = 0, entries = 0;
    store_.table.for_each_live(place, [&](unsigned slot) {
      ++live;
      in_place(store_.table.pair(place, slot));
      expect_here(slot < bucket.next_slot(), "a pair in a slot that is free");
    });
    const auto has_print = [&](unsigned slot) {
      ++entries;
      expect_here(store_.table.live(place.segment->offset, place.at, slot),
                  "a fingerprint of a pair that does not count");
    };
    for (unsigned i = 0; i < bucket.entries(); ++i) {
      const std::uint16_t entry = bucket.entry(i);
      if (!store_.code.killed(entry)) has_print(store_.code.slot(entry));
    }
    for (unsigned i = 0; i < bucket.recent_count(); ++i) {
      if (bucket.recent_live(i)) has_print(bucket.recent_slot(i));
    }
    expect(live == entries, "segment {:#x}: bucket {} has {} pairs and {} fingerprints",
           place.segment->offset, place.at, live, entries);
    for (unsigned i = 0; i < bucket.d_count(); ++i) {
      if (!bucket.d_live(i)) continue;
      const BackupRef ref = bucket.d_ref(i);
      const Pair pair{bucket.d_key(i), bucket.d_value(i)};
      in_place(pair);
      expect_here(ref < in_d_.size() && in_d_[ref]++ == 0 && store_.backup.counts(ref) &&
                      pm::load(store_.backup.pair(ref).key) == pair.key &&
                      pm::load(store_.backup.pair(ref).value) == pair.value,
                  "a D pair that is not in the backup log (E4)");
    }
  }

  /// Each pair that counts in the backup log is a D pair or on its way to a D-bucket; each that
  /// counts in a log lies in its log.
  void check_logs() {
    census_.for_each_in_flight([&](BackupRef ref) {
      expect(in_d_[ref]++ == 0, "pair {} of the backup log is in flight twice", ref);
      (void)check_pair(store_.backup.pair(ref));
    });
    for (Unit unit = 0; unit < store_.backup.units(); ++unit) {
      if (store_.backup.gone(unit)) continue;
      unsigned counting = 0;
      store_.backup.for_each_pair(unit, [&](BackupRef ref) {
        ++counting;
        expect(in_d_[ref] != 0, "backup unit {}: pair {} is in no D-bucket (E4)", unit, ref);
      });
      // By pairs that count, and by a thread that fills it.
      const unsigned uses = store_.backup.counted(unit);
      expect(uses == counting || uses == counting + 1,
             "backup unit {}: {} pairs count, and it has {} uses", unit, counting, uses);
    }
    census_.for_each_log([&](const LogSet& logs, CollectingLog log) {
      const LogLine& line = log.line();
      expect(LogWord::unpack(pm::load(log.word())).count == line.count,
             "collecting log {}: another number of pairs in DRAM (E5)", log.name());
      for (unsigned i = 0; i < line.count; ++i) {
        expect(log.dead(i) == (line.print(i) == 0),
               "collecting log {}: pair {} is not as its fingerprint (E5)", log.name(), i);
        if (log.dead(i)) continue;
        const Pair& pair = log.pairs()[i];
        if (!check_pair(pair)) continue;
        expect(logs.log_of(store_.words.hash_of_word(pair.key)).name() == log.name(),
               "collecting log {}: pair {} belongs to another (E5)", log.name(), i);
      }
    });
  }

  const Store<K>& store_;
  const Census<K> census_;
  CheckReport report_;
  std::vector<std::uint8_t> in_d_;  // pairs of the backup log that D-buckets refer to, or flights
};

}  // namespace perdix::detail::index::elimda
