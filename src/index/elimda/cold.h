// Instant opening: no segment is known at first (dram_table.h), and all are cold, which means that
// their buckets have no DRAM side. A segment becomes warm when a call needs it, or when the
// background thread comes to it.
//
// A cold segment does not change in PM: a thread that changes it makes it warm first. So several
// threads may make one segment warm concurrently, and none waits for another: each makes all
// buckets, and of each bucket the one that is put in place first stays. Pairs of the backup log
// that belong to a cold segment do not change either. A unit whose pairs have all left may have
// been used again since the opening; then its words have another number, and it is skipped.
//
// A pair that a crash left both in a segment and in the backup log (E7) loses its bit in the backup
// log before the bucket is put in place.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "epoch/guard.h"
#include "epoch/reclaimer.h"
#include "index/common/resumption.h"
#include "index/elimda/backup_log.h"
#include "index/elimda/dram_table.h"
#include "index/elimda/fingerprints.h"
#include "index/elimda/pm_table.h"
#include "index/elimda/words.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

template <class K>
class Cold {
 public:
  Cold(pool::PoolCore& pool, const Shape& shape, const FingerprintCode& code, const bool& straight,
       const Words<K>& words, util::Arena& arena, BackupLog& backup, const PmTable& table,
       const DramTable& dram)
      : pool_(pool),
        shape_(shape),
        code_(code),
        straight_(straight),
        words_(words),
        arena_(arena),
        backup_(backup),
        table_(table),
        dram_(dram) {}
  Cold(const Cold&) = delete;
  Cold& operator=(const Cold&) = delete;
  ~Cold() {
    stop();  // also if the index was never complete: its thread reads the list
    delete list_.load();
  }

  /// On opening. Throws bad_alloc.
  void begin(unsigned log_depth) {
    list_.store(new List(shape_, log_depth), std::memory_order_release);
  }

  /// Makes a segment warm: gives each bucket that has none its DRAM side. The caller is in an
  /// epoch::Guard. Throws corrupt, bad_alloc.
  void warm(Segment& segment) const {
    std::vector<ColdPair> pairs = cold_pairs(segment);
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.bucket < b.bucket; });
    auto begin = pairs.begin();
    for (unsigned at = 0; at < shape_.buckets; ++at) {
      const auto end =
          std::find_if(begin, pairs.end(), [&](const auto& pair) { return pair.bucket != at; });
      const Place place{&segment, at, nullptr};
      Slot& slot = segment.slot(at);
      if (slot.bucket() == nullptr) {
        Bucket* made = make_bucket(place, {begin, end});
        pm::on_step("elimda: a bucket becomes warm");
        if (!slot.warm(made)) made->release(arena_);
      }
      begin = end;
    }
  }

  /// Makes all segments warm in the background, until stop().
  void start() {
    resumption_.start_thread([this](const std::stop_token& stop) { warm_all(stop); });
  }
  void stop() { resumption_.stop(); }

  /// Returns when all segments are warm: waits for the background thread, and does what is left.
  /// Throws corrupt, bad_alloc.
  void require_warm() {
    resumption_.wait_for_thread();
    if (!resumption_.done()) warm_all(std::stop_token());
  }

  /// From the opening until all was warm; 0 before.
  double seconds() const { return resumption_.seconds(); }

 private:
  using Unit = BackupLog::Unit;

  /// A pair of the backup log, in a list that is sorted by hash. Those of one hash are in the order
  /// in which they came.
  struct ColdEntry {
    std::uint64_t hash;
    std::uint64_t copy;  ///< UnitWord::copy()
    BackupRef ref;
  };
  using Sorted = std::vector<ColdEntry>;

  using UsedUnit = BackupLog::UsedUnit;
  using SortedPlace = std::atomic<const Sorted*>;

  /// Pairs of the backup log, as segments have needed them: each list is made when the first
  /// segment needs it. Otherwise each of the segments that share it would read all its units.
  struct List : epoch::Retirable {
    std::array<SortedPlace, ChunkLists::kRegions> mixed{};  ///< by region: of no log (kNoLog)
    std::unique_ptr<SortedPlace[]> of_logs;                 ///< by log
    unsigned names;                                         ///< of logs: from 0 to below this
    unsigned log_depth;  ///< of the logs; units may be of logs of smaller depths

    List(const Shape& shape, unsigned depth)
        : of_logs(std::make_unique<SortedPlace[]>(shape.log_names())),
          names(shape.log_names()),
          log_depth(depth) {}
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    ~List() {
      for (const SortedPlace& place : mixed) delete place.load();
      for (unsigned name = 0; name < names; ++name) delete of_logs[name].load();
    }
  };

  /// A pair of the backup log that belongs to a cold segment.
  struct ColdPair {
    unsigned bucket;
    std::uint64_t copy;  ///< UnitWord::copy()
    DPair pair;
  };

  /// Makes all segments warm, from the lowest hash on; then drops the list of make(). Returns early
  /// if a stop is requested.
  void warm_all(const std::stop_token& stop) {
    std::uint64_t hash = 0;
    do {
      if (stop.stop_requested()) return;
      const epoch::Guard guard;
      Segment& segment = dram_.segment_of({hash});
      bool cold = false;
      for (unsigned i = 0; i < shape_.buckets; ++i) cold |= segment.slot(i).bucket() == nullptr;
      if (cold) warm(segment);
      hash = segment.next_hash();
    } while (hash != 0);
    dram_.set_all_known();
    if (List* list = list_.exchange(nullptr)) {
      pool_.reclaimer().retire(list);
      backup_.forget_used();
    }
    resumption_.set_done();
  }

  /// The pairs of the backup log that belong to a segment, in the order in which they came.
  std::vector<ColdPair> cold_pairs(const Segment& segment) const {
    std::vector<ColdPair> pairs;
    List* cold = list_.load(std::memory_order_acquire);
    if (cold == nullptr) return pairs;
    const KeyHash first{segment.first_hash()}, last{segment.next_hash() - 1};
    // First: one of them was looked for before it was stored, so another of its key is younger.
    backup_.lists().for_each_region(first, last, ChunkLists::kMaxDepth, [&](Region region) {
      const std::vector<UsedUnit>* used = backup_.used_in(region);
      if (used == nullptr || used->back().log != UnitWord::kNoLog) return;
      const auto units = units_of(*used, UnitWord::kNoLog, UnitWord::kNoLog);
      add_cold_pairs(pairs, segment, sorted_pairs(cold->mixed[region], units));
    });
    // Then from the fewest logs on that there were: these pairs are older (E4).
    for (unsigned depth = shape_.logs_grow ? 0 : cold->log_depth; depth <= cold->log_depth; ++depth)
      add_cold_logs(pairs, segment, *cold, depth);
    return pairs;
  }

  /// Adds the pairs of a segment in the units of the logs of one depth.
  void add_cold_logs(std::vector<ColdPair>& pairs, const Segment& segment, const List& cold,
                     unsigned depth) const {
    const auto name_of = [&](KeyHash hash) {
      return shape_.log_name(depth, static_cast<unsigned>(hash.prefix(depth)));
    };
    const KeyHash first{segment.first_hash()}, last{segment.next_hash() - 1};
    const std::vector<UsedUnit> units = units_of_logs(name_of(first), name_of(last), first, last);
    if (units.empty()) return;
    if (segment.depth > depth)
      return add_cold_pairs(pairs, segment, sorted_pairs(cold.of_logs[name_of(first)], units));
    for (const UsedUnit& unit : units) {
      for (unsigned i = 0; i < shape_.unit_pairs; ++i)
        add_cold_pair(pairs, segment, backup_.ref(unit.unit, i),
                      UnitWord::copy_of(unit.log, unit.number));
    }
  }

  /// The units of some logs, in the order of logs, then of numbers. Each of these logs has one of
  /// the hashes. Units of one log may lie in several regions.
  std::vector<UsedUnit> units_of_logs(unsigned first_log, unsigned last_log, KeyHash first,
                                      KeyHash last) const {
    std::vector<UsedUnit> units;
    backup_.lists().for_each_region(first, last, ChunkLists::kMaxDepth, [&](Region region) {
      const std::vector<UsedUnit>* used = backup_.used_in(region);
      if (used == nullptr) return;
      const auto of_region = units_of(*used, first_log, last_log);
      units.insert(units.end(), of_region.begin(), of_region.end());
    });
    std::sort(units.begin(), units.end());
    return units;
  }

  /// The units of some logs among those of a region.
  static std::span<const UsedUnit> units_of(const std::vector<UsedUnit>& used, unsigned first_log,
                                            unsigned last_log) {
    const auto begin = std::partition_point(
        used.begin(), used.end(), [&](const UsedUnit& unit) { return unit.log < first_log; });
    const auto end = std::partition_point(
        begin, used.end(), [&](const UsedUnit& unit) { return unit.log <= last_log; });
    return {begin, end};
  }

  /// Returns the pairs of units, sorted by hash; makes the list if no thread has made it yet.
  const Sorted& sorted_pairs(SortedPlace& place, std::span<const UsedUnit> units) const {
    const Sorted* there = place.load(std::memory_order_acquire);
    if (there != nullptr) return *there;
    auto made = std::make_unique<Sorted>();
    for (const UsedUnit& unit : units)
      add_sorted(*made, unit.unit, UnitWord::copy_of(unit.log, unit.number));
    std::stable_sort(made->begin(), made->end(),
                     [](const auto& a, const auto& b) { return a.hash < b.hash; });
    if (place.compare_exchange_strong(there, made.get())) return *made.release();
    return *there;  // another thread's, which is the same
  }

  /// Adds the pairs of a unit that count, unless the unit has been used again: `copy` is what its
  /// words had on opening.
  void add_sorted(Sorted& pairs, Unit unit, std::uint64_t copy) const {
    for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
      const BackupRef ref = backup_.ref(unit, i);
      if (UnitWord::copy(pm::load(backup_.word(ref))) != copy || !backup_.counts(ref)) continue;
      pairs.push_back({words_.hash_of_word(pm::load(backup_.pair(ref).key)).bits, copy, ref});
    }
  }

  void add_cold_pairs(std::vector<ColdPair>& pairs, const Segment& segment,
                      const Sorted& sorted) const {
    const std::uint64_t first = segment.first_hash(), last = segment.next_hash() - 1;
    auto at = std::partition_point(sorted.begin(), sorted.end(),
                                   [&](const auto& pair) { return pair.hash < first; });
    for (; at != sorted.end() && at->hash <= last; ++at)
      add_cold_pair(pairs, segment, at->ref, at->copy);
  }

  void add_cold_pair(std::vector<ColdPair>& pairs, const Segment& segment, BackupRef ref,
                     std::uint64_t copy) const {
    const std::uint64_t word = pm::load(backup_.word(ref));
    if (UnitWord::copy(word) != copy || (word & backup_.bit(ref)) == 0) return;
    const Pair pair = load(backup_.pair(ref));
    const KeyHash hash = words_.hash_of_word(pair.key);
    if (hash.prefix(segment.depth) != segment.prefix) return;
    pairs.push_back({hash.bucket(shape_.buckets), copy, {pair, ref, hash.signature()}});
  }

  /// Makes the DRAM side of a bucket from its live bits in PM and from `pairs`, those of the backup
  /// log. Throws corrupt, bad_alloc.
  Bucket* make_bucket(const Place& place, std::span<const ColdPair> pairs) const {
    std::vector<PSlot> slots;
    slots.reserve(shape_.p_pairs);
    table_.for_each_live(place, [&](unsigned slot) {
      if (slot >= shape_.p_pairs) pool::throw_corrupt(pool_, "live bits", place.segment->offset);
      slots.push_back({static_cast<std::uint16_t>(slot),
                       words_.signature_of(pm::load(table_.pair(place, slot).key))});
    });
    if (pairs.size() > Bucket::kMaxDramPairs)
      pool::throw_corrupt(pool_, "too many pairs in the backup log for a bucket",
                          place.segment->offset);
    Bucket::Contents contents =
        Bucket::contents_for(shape_, static_cast<unsigned>(pairs.size()), straight_);
    contents.slots = slots;
    contents.used = slots.empty() ? 0 : slots.back().slot + 1u;
    Bucket* made = Bucket::make(arena_, code_, contents);
    const Place filled{place.segment, place.at, made};
    for (const ColdPair& pair : pairs) {
      if (!drop_copy(filled, pair)) made->d_add(pair.pair);
    }
    return made;
  }

  /// Whether the P-bucket has a pair of the same words. It need not be the first one of its key.
  bool is_in_p(const Place& place, const DPair& pair) const {
    return place.bucket->find_entry(code_, pair.signature, [&](unsigned, std::uint16_t entry) {
      if (code_.killed(entry)) return false;
      const Pair& in_p = table_.pair(place, code_.slot(entry));
      return pm::load(in_p.key) == pair.pair.key && pm::load(in_p.value) == pair.pair.value;
    });
  }

  /// Returns whether a pair of the backup log is also in its P-bucket (E7), because a crash
  /// interrupted a relocation after it had copied the pair. Then this clears the pair's bit in the
  /// backup log, durably: if the pair is erased from the P-bucket later, the copy must not bring it
  /// back. By compare-and-swap: other threads may be making the segment warm, too, or have done so
  /// already.
  bool drop_copy(const Place& place, const ColdPair& pair) const {
    if (!is_in_p(place, pair.pair)) return false;
    pm::on_step("elimda: a copy is dropped from the backup log");
    std::uint64_t& word = backup_.word(pair.pair.ref);
    const std::uint64_t bit = backup_.bit(pair.pair.ref);
    std::uint64_t before = pm::load(word);
    while (UnitWord::copy(before) == pair.copy && (before & bit) != 0) {
      if (!pool_.pm().compare_exchange(word, before, before & ~bit)) continue;
      pool_.pm().persist(&word, sizeof word);  // before the pair can be erased
      backup_.forget(pair.pair.ref);
      return true;
    }
    // Another thread has cleared it, perhaps not durably yet.
    pool_.pm().persist(&word, sizeof word);
    return true;
  }

  pool::PoolCore& pool_;
  const Shape& shape_;
  const FingerprintCode& code_;
  const bool& straight_;
  const Words<K>& words_;
  util::Arena& arena_;
  BackupLog& backup_;
  const PmTable& table_;
  const DramTable& dram_;
  std::atomic<List*> list_{nullptr};
  Resumption resumption_;
};

}  // namespace perdix::detail::index::elimda
