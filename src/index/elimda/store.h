// The layers of an index, and lookups in them: PM table, DRAM table, collecting logs, in this order
// (ElimDa paper, 3.4: reversed search).
//
// Pairs move in the opposite direction, so a pair may pass a lookup on its way. A lookup sees
// P-bucket and D-bucket at one moment (bucket.h). If neither has the key, the lookup searches the
// unit in flight and the log (collecting_log.h), and then validates: the bucket was not replaced
// and its D-bucket has no more pairs, and the log's `moves` has not changed. If that holds, a pair
// that existed during the whole lookup was in one place during the whole lookup: in the bucket, in
// flight or in the log. So the lookup would have found it. If validation fails, a writer has made
// progress, and the lookup begins again. So lookups are lock-free: they take no lock and wait for
// none, but for the first look at a segment after an opening (dram_table.h).
//
// A larger set of logs may replace the one that a lookup has taken (more_logs.h). The lookup need
// not ask: what it finds was so when it took the set, which is within the call.
//
// Batches of lookups: a lookup waits for memory most of its time, so the keys of a group take each
// step together, and their waits overlap.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "index/common/groups.h"
#include "index/elimda/backup_log.h"
#include "index/elimda/cold.h"
#include "index/elimda/collecting_log.h"
#include "index/elimda/dram_table.h"
#include "index/elimda/fingerprints.h"
#include "index/elimda/pm_table.h"
#include "index/elimda/shape.h"
#include "index/elimda/words.h"
#include "pm/persist.h"
#include "pool/pool_core.h"
#include "util/arena.h"

namespace perdix::detail::index::elimda {

enum class Where { nowhere, p_bucket, d_bucket, in_flight, log };

/// The first pair of a key.
struct Found {
  Where where = Where::nowhere;
  unsigned at = 0;                ///< slot of the P-bucket, of the unit or of the log; D pair
  std::uint64_t* word = nullptr;  ///< its value in PM
  Word value = 0;

  explicit operator bool() const { return where != Where::nowhere; }
};

/// Calls of lookups are made in an epoch::Guard.
template <class K>
class Store {
 public:
  using Key = View<K>;

  /// Empty layers of the index with this root. Throws corrupt.
  Store(pool::PoolCore& of_pool, Root& of_index, Kind value_kind, unsigned fingerprint_bits,
        bool comes_straight = false)
      : pool(of_pool),
        root(of_index),
        shape(shape_of(pool, root)),
        words(pool, shape.seed, value_kind),
        code(shape, fingerprint_bits),
        volatile_caches(pool.pm().domain() != pm::Domain::cpu_cache),
        straight(comes_straight),
        backup(pool, root, shape),
        logs(pool, root, shape),
        table(pool, root, shape),
        dram(arena, pool.reclaimer(), table, shape.buckets),
        cold(pool, shape, code, straight, words, arena, backup, table, dram) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Returns the first pair of a key.
  Found find(Key key, KeyHash hash) const;
  /// find() for at most kGroup keys.
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;

  Found find_in_p(const Place& place, Key key, KeyHash hash) const;
  Found find_in_d(const Place& place, Key key, KeyHash hash) const;
  Found find_in_bucket(const Place& place, Key key, KeyHash hash) const;
  Found find_in_logs(CollectingLog log, Key key, KeyHash hash) const;

  Bucket& bucket_of(Segment& segment, unsigned at) const;
  Locked lock_bucket(KeyHash hash, bool for_live_bits = false) const;
  std::optional<CollectingLog> lock_log(std::unique_lock<util::SpinLock>& lock, KeyHash hash) const;

  /// Makes the DRAM side of a bucket: with these D pairs, the P-bucket's pairs that `before` has
  /// fingerprints of and that were not killed, and those in `slots`. Slots below `used` are in use.
  /// Throws bad_alloc.
  Bucket* new_bucket(const Bucket* before, std::span<const PSlot> slots,
                     std::span<const DPair> d_pairs, unsigned used) {
    Bucket::Contents contents =
        Bucket::contents_for(shape, static_cast<unsigned>(d_pairs.size()), straight);
    contents.before = before;
    contents.slots = slots;
    contents.d_pairs = d_pairs;
    contents.used = used;
    return Bucket::make(arena, code, contents);
  }

  /// The slot of a P-bucket where the next pair, or media unit, may come; p_pairs if it is full.
  unsigned free_slot(const Bucket& bucket) const {
    return straight ? bucket.next_slot() : shape.unit_from(bucket.next_slot());
  }

  /// Whether no writer holds the lock under which keys come and go: that of a log, or where there
  /// are no logs that of a bucket. Each was free at some moment of the call.
  bool quiet() const;

  /// Called when the value of a P pair was read, before it is shown.
  void ensure_durable(const Place& place, const Pair& pair) const {
    if (!volatile_caches) return;
    // A bucket that was replaced does not know of later updates.
    const bool replaced = place.segment->obsolete.load(std::memory_order_acquire) ||
                          place.segment->slot(place.at).bucket() != place.bucket;
    if (!replaced && !place.bucket->has_unpersisted()) return;
    // A writer may be about to make the value durable. No caller may see it before that.
    pm().persist(&pair.value, sizeof pair.value);
  }

  const pm::Persister& pm() const { return pool.pm(); }

  pool::PoolCore& pool;
  Root& root;
  const Shape shape;
  const Words<K> words;
  const FingerprintCode code;
  const bool volatile_caches;
  /// Pairs come straight to their P-buckets, not in media units. Does not change once the index is
  /// open.
  bool straight;
  util::Arena arena;
  BackupLog backup;
  CollectingLogs logs;
  PmTable table;
  DramTable dram;
  mutable Cold<K> cold;  // what is in DRAM is a cache

 private:
  Place place_of(KeyHash hash) const;
  bool current(const Place& place, KeyHash hash) const;
  template <class Live>
  Found read_p(const Place& place, unsigned slot, Key key, KeyHash hash, Live live) const;
  Found find_in_flight(const LogLine& line, Key key, KeyHash hash) const;
  Found find_in_log(CollectingLog log, Key key, KeyHash hash) const;
  Found find_from(Place place, Key key, KeyHash hash) const;
  void prefetch_pair(const Place& place, KeyHash hash) const;
};

/// Returns the DRAM side of a bucket. Makes its segment warm first if it is cold (cold.h).
template <class K>
Bucket& Store<K>::bucket_of(Segment& segment, unsigned at) const {
  Bucket* bucket = segment.slot(at).bucket();
  if (bucket == nullptr) [[unlikely]] {
    cold.warm(segment);
    bucket = segment.slot(at).bucket();
  }
  return *bucket;
}

/// Returns the bucket of a hash as it is now, and prefetches what a lookup will read of it.
template <class K>
[[gnu::always_inline]] inline Place Store<K>::place_of(KeyHash hash) const {
  Segment& segment = dram.segment_of(hash);
  const unsigned at = hash.bucket(shape.buckets);
  Bucket& bucket = bucket_of(segment, at);
  bucket.prefetch_for_lookup(code, hash.signature());
  return {&segment, at, &bucket};
}

/// Whether the bucket of a hash is still the one that place_of() returned.
template <class K>
bool Store<K>::current(const Place& place, KeyHash hash) const {
  return &dram.segment_of(hash) == place.segment &&
         place.segment->slot(place.at).bucket() == place.bucket;
}

/// Returns the pair in a slot of a P-bucket if it has the key, and live() says afterwards that it
/// was not killed.
template <class K>
template <class Live>
[[gnu::always_inline]] inline Found Store<K>::read_p(const Place& place, unsigned slot, Key key,
                                                     KeyHash hash, Live live) const {
  Pair& pair = table.pair(place, slot);
  if (!words.is_key(pm::load(pair.key), key, hash)) return {};
  const Word value = pm::load(pair.value);
  // Killed: so are all later pairs of the key, since the youngest is killed first.
  if (!live()) return {};
  ensure_durable(place, pair);
  return {Where::p_bucket, slot, &pair.value, value};
}

template <class K>
[[gnu::always_inline]] inline Found Store<K>::find_in_p(const Place& place, Key key,
                                                        KeyHash hash) const {
  Found found;
  const Bucket& bucket = *place.bucket;
  const bool any = bucket.find_entry(code, hash.signature(), [&](unsigned i, std::uint16_t entry) {
    if (code.killed(entry)) return false;
    found = read_p(place, code.slot(entry), key, hash, [&] { return bucket.entry(i) == entry; });
    return static_cast<bool>(found);
  });
  if (any) return found;
  bucket.find_recent(hash.signature(), [&](unsigned i) {
    found = read_p(place, bucket.recent_slot(i), key, hash, [&] { return bucket.recent_live(i); });
    return static_cast<bool>(found);
  });
  return found;
}

template <class K>
[[gnu::always_inline]] inline Found Store<K>::find_in_d(const Place& place, Key key,
                                                        KeyHash hash) const {
  Found found;
  const Bucket& bucket = *place.bucket;
  bucket.find_d(hash.signature(), [&](unsigned i) {
    if (!words.is_key(bucket.d_key(i), key, hash)) return false;
    const Word value = bucket.d_value(i);
    if (!bucket.d_live(i)) return false;
    found = {Where::d_bucket, i, nullptr, value};
    return true;
  });
  return found;
}

template <class K>
[[gnu::always_inline]] inline Found Store<K>::find_in_bucket(const Place& place, Key key,
                                                             KeyHash hash) const {
  if (const Found found = find_in_p(place, key, hash)) return found;
  return find_in_d(place, key, hash);
}

/// Searches the unit that is on its way from the log to the DRAM table, if there is one. The unit
/// may have been freed and used again in the meantime: the caller validates `moves`.
template <class K>
[[gnu::always_inline]] inline Found Store<K>::find_in_flight(const LogLine& line, Key key,
                                                             KeyHash hash) const {
  const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
  if (in_flight == 0) return {};
  for (unsigned i = 0; i < shape.unit_pairs; ++i) {
    const BackupRef ref = backup.ref(in_flight - 1, i);
    if (!backup.counts(ref)) continue;
    Pair& pair = backup.pair(ref);
    if (!words.is_key(pm::load(pair.key), key, hash)) continue;
    const Word value = pm::load(pair.value);
    if (backup.counts(ref)) return {Where::in_flight, i, &pair.value, value};
  }
  return {};
}

/// Searches the pairs of a log. The caller validates `moves`.
template <class K>
[[gnu::always_inline]] inline Found Store<K>::find_in_log(CollectingLog log, Key key,
                                                          KeyHash hash) const {
  const LogLine& line = log.line();
  const LogLine::Print print = LogLine::print_of(hash.signature());
  const auto* prints = reinterpret_cast<const LogLine::Print*>(&line + 1);
  for (unsigned first = 0; first < shape.unit_pairs; first += 8) {
    for (unsigned match = match_eight(prints + first, 0xffff, print); match != 0;
         match &= match - 1) {
      const unsigned i = first + static_cast<unsigned>(__builtin_ctz(match));
      Pair& pair = log.pairs()[i];
      if (i >= shape.unit_pairs || line.print(i) != print) continue;
      if (!words.is_key(pm::load(pair.key), key, hash)) continue;
      const Word value = pm::load(pair.value);
      if (line.print(i) == print) return {Where::log, i, &pair.value, value};
    }
  }
  return {};
}

/// Searches the unit in flight first, since its pairs are older than those of the log.
template <class K>
Found Store<K>::find_in_logs(CollectingLog log, Key key, KeyHash hash) const {
  if (const Found found = find_in_flight(log.line(), key, hash)) return found;
  return find_in_log(log, key, hash);
}

/// Returns the first pair of a key. `place` is the key's bucket as place_of() found it. The caller
/// is in an epoch::Guard.
template <class K>
Found Store<K>::find_from(Place place, Key key, KeyHash hash) const {
  for (;; place = place_of(hash)) {
    const unsigned d_count = place.bucket->d_count();
    if (const Found found = find_in_bucket(place, key, hash)) return found;
    const LogSet* set = logs.set();
    if (set == nullptr) return {};
    pm::on_step("elimda: a lookup goes on to the logs");
    const CollectingLog log = set->log_of(hash);
    const LogLine& line = log.line();
    const std::uint32_t moves = line.moves.load(std::memory_order_acquire);
    const Found found = find_in_logs(log, key, hash);
    // Keeps the compiler from moving the vector comparison below the validation.
    std::atomic_signal_fence(std::memory_order_acquire);
    if (current(place, hash) && place.bucket->d_count() == d_count &&
        line.moves.load(std::memory_order_acquire) == moves) [[likely]]
      return found;
    pm::on_step("elimda: a lookup begins again");
  }
}

template <class K>
Found Store<K>::find(Key key, KeyHash hash) const {
  return find_from(place_of(hash), key, hash);
}

/// One step for each key in turn, so that their waits for memory overlap: directory, bucket,
/// fingerprints, pair.
template <class K>
void Store<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  std::array<KeyHash, kGroup> hashes;
  std::array<Place, kGroup> places;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    hashes[i] = words.hash_of(keys[i]);
    Segment& segment = dram.segment_of(hashes[i]);
    places[i] = {&segment, hashes[i].bucket(shape.buckets), nullptr};
    __builtin_prefetch(&segment.slot(places[i].at));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    places[i].bucket = &bucket_of(*places[i].segment, places[i].at);
    __builtin_prefetch(places[i].bucket);
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    places[i].bucket->prefetch_group(code, hashes[i].signature());
  for (std::size_t i = 0; i < keys.size(); ++i) prefetch_pair(places[i], hashes[i]);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Found found = find_from(places[i], keys[i], hashes[i]);
    out[i] = found ? std::optional<Word>(found.value) : std::nullopt;
  }
}

/// Asks for the first pair of the P-bucket that may be of that hash, or for the log.
template <class K>
void Store<K>::prefetch_pair(const Place& place, KeyHash hash) const {
  const auto prefetch = [&](unsigned slot) {
    __builtin_prefetch(&table.pair(place, slot));
    return true;
  };
  const Bucket& bucket = *place.bucket;
  const bool any = bucket.find_entry(code, hash.signature(), [&](unsigned, std::uint16_t entry) {
    return prefetch(code.slot(entry));
  }) || bucket.find_recent(hash.signature(), [&](unsigned i) {
    return prefetch(bucket.recent_slot(i));
  });
  const LogSet* set = logs.set();
  if (!any && set != nullptr) __builtin_prefetch(&set->log_of(hash).line());
}

/// Locks the bucket of a hash and returns it. Its segment is warm, and not obsolete. Prefetches
/// what the caller will read: the lock keeps the processor from reading ahead. `for_live_bits`: the
/// caller is going to change some.
template <class K>
Locked Store<K>::lock_bucket(KeyHash hash, bool for_live_bits) const {
  for (;;) {
    Segment& segment = dram.segment_of(hash);
    const unsigned at = hash.bucket(shape.buckets);
    const Bucket& bucket = bucket_of(segment, at);  // warm before it is changed
    if (straight) {
      bucket.prefetch_for_lookup(code, hash.signature());
      if (for_live_bits) __builtin_prefetch(table.live_words(segment.offset, at), 1);
    }
    Slot& slot = segment.slot(at);
    std::unique_lock lock(slot);
    if (segment.obsolete.load(std::memory_order_acquire)) {
      pm::on_step("elimda: a writer meets a segment that was split");
      continue;
    }
    return {{&segment, at, slot.bucket()}, std::move(lock)};
  }
}

template <class K>
bool Store<K>::quiet() const {
  bool quiet = true;
  if (const LogSet* set = logs.set()) {
    set->for_each([&](CollectingLog log) {
      quiet = quiet && std::unique_lock(log.line().lock, std::try_to_lock).owns_lock();
    });
    return quiet;
  }
  dram.for_each_segment([&](const Segment& segment) {
    for (unsigned at = 0; at < shape.buckets; ++at) quiet = quiet && !segment.slot(at).locked();
  });
  return quiet;
}

/// Locks the log of a hash; returns nothing if the index has no logs.
template <class K>
std::optional<CollectingLog> Store<K>::lock_log(std::unique_lock<util::SpinLock>& lock,
                                                KeyHash hash) const {
  while (const LogSet* set = logs.set()) {
    const CollectingLog log = set->log_of(hash);
    lock = std::unique_lock(log.line().lock);
    if (!log.line().retired) return log;
    pm::on_step("elimda: a writer meets a log that is retired");
    lock.unlock();
  }
  return std::nullopt;
}

}  // namespace perdix::detail::index::elimda
