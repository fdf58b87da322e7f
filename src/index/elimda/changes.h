// Update and erase: the pairs of a key may lie in every layer, and be moving to the next one.
//
// While the lock of the key's bucket is held, no pair of the key enters that bucket, moves within
// it or leaves it. While the lock of its log is held too, no pair of the key enters the index. An
// update replaces the first value, in place (ElimDa paper, 3.1). An erase kills all, the youngest
// first: so the last kill is the commit, and neither a crash nor a reader finds a duplicate whose
// first value is gone.
#pragma once

#include "alloc/session.h"
#include "index/elimda/key_count.h"
#include "index/elimda/store.h"
#include "pm/change.h"

namespace perdix::detail::index::elimda {

enum class Replaced { yes, absent, differs };

template <class K>
class PairChanges {
 public:
  using Key = View<K>;

  PairChanges(Store<K>& store, KeyCount& count) : store_(store), count_(count) {}

  /// Replaces the value of a key that is there, if it is `expected` (null: any).
  Replaced replace(Key key, KeyHash hash, NewValue value, const NewValue* expected) {
    const Replaced in_bucket =
        replace_in_bucket(store_.lock_bucket(hash), key, hash, value, expected);
    if (in_bucket != Replaced::absent || store_.logs.set() == nullptr) return in_bucket;
    pm::on_step("elimda: an update goes on to the logs");
    const CollectingLog log = store_.logs.set()->log_of(hash);
    const std::lock_guard lock(log.line().lock);
    if (log.line().retired) return Replaced::absent;  // the caller looks again
    const Locked locked = store_.lock_bucket(hash);   // it may have come into the bucket in between
    const Replaced now = replace_in_bucket(locked, key, hash, value, expected);
    return now == Replaced::absent ? replace_in_logs(log, key, hash, value, expected) : now;
  }

  Replaced replace_in_bucket(const Locked& locked, Key key, KeyHash hash, NewValue value,
                             const NewValue* expected) {
    Bucket& bucket = *locked.bucket;
    if (const Found found = store_.find_in_p(locked, key, hash)) {
      if (!store_.words.value_is(found.value, expected)) return Replaced::differs;
      set_value_in_p(bucket, *found.word, value);
      return Replaced::yes;
    }
    if (const Found found = store_.find_in_d(locked, key, hash)) {
      if (!store_.words.value_is(found.value, expected)) return Replaced::differs;
      set_value(store_.backup.pair(bucket.d_ref(found.at)).value, value,
                [&](Word word) { bucket.d_set_value(found.at, word); });
      return Replaced::yes;
    }
    return Replaced::absent;
  }

  /// Removes a key, if its value is `expected` (null: any). False if it is not there. The caller is
  /// in an epoch::Guard.
  bool erase(Key key, KeyHash hash, const NewValue* expected) {
    // Without logs a look costs more than the lock of a bucket.
    if (store_.logs.set() != nullptr && !store_.find(key, hash)) return false;
    std::unique_lock<util::SpinLock> lock;
    const std::optional<CollectingLog> log = store_.lock_log(lock, hash);
    const Locked locked = store_.lock_bucket(hash, true);
    if (expected != nullptr) {
      const Found first = find_locked(log, locked, key, hash);
      if (!first || !store_.words.value_is(first.value, expected)) return false;
    }
    if (!erase_locked(log, locked, key, hash)) return false;
    count_.removed();
    return true;
  }

  /// Kills a D pair, first in PM.
  void kill_d_pair(const Place& place, unsigned i) {
    const BackupRef ref = place.bucket->d_ref(i);
    store_.words.kill(store_.backup.killing(ref),
                      {place.bucket->d_key(i), place.bucket->d_value(i)},
                      [&] { place.bucket->d_kill(i); });
    store_.backup.forget(ref);
  }

  void kill_p_entry(const Place& place, unsigned entry) {
    kill_in_slot(place, store_.code.slot(place.bucket->entry(entry)),
                 [&] { place.bucket->kill_entry(store_.code, entry); });
  }

 private:
  /// Only the holder of the bucket's lock changes its live bits.
  template <class Unlink>
  void kill_in_slot(const Place& place, unsigned slot, Unlink unlink) {
    const Pair& pair = store_.table.pair(place, slot);
    store_.words.kill({&store_.table.live_word(place.segment->offset, place.at, slot),
                       PmTable::live_bit(slot), 0},
                      load(pair), unlink, Shared::no);
  }

  /// Readers of a P-bucket see the value before it is durable: they are told.
  void set_value_in_p(Bucket& bucket, std::uint64_t& word, NewValue value) {
    if (store_.volatile_caches) bucket.unpersisted().fetch_add(1);
    try {
      set_value(word, value, [](Word) {});
    } catch (...) {
      if (store_.volatile_caches) bucket.unpersisted().fetch_sub(1);
      throw;
    }
    if (store_.volatile_caches) bucket.unpersisted().fetch_sub(1);
  }

  /// The caller holds the lock of the log, and of the key's bucket, which does not have the key.
  Replaced replace_in_logs(CollectingLog log, Key key, KeyHash hash, NewValue value,
                           const NewValue* expected) {
    const Found found = store_.find_in_logs(log, key, hash);
    if (!found) return Replaced::absent;
    if (!store_.words.value_is(found.value, expected)) return Replaced::differs;
    set_value(*found.word, value, [](Word) {});
    return Replaced::yes;
  }

  /// Stores a value in its word, durably. Then show(word) makes it visible where readers go by a
  /// copy of the word: before the old value may be used again.
  template <class Show>
  void set_value(std::uint64_t& word, NewValue value, Show show) {
    if (store_.words.values().is_inline()) {
      store_.pm().publish(word, value.word());  // the commit
      show(value.word());
    } else {
      alloc::Session session = store_.pool.allocator().session();
      const Word old_word = pm::load(word);
      const Word new_word = store_.words.values().write(session, value);
      if (new_word == old_word) return;  // both are empty
      store_.words.values().free(session, old_word);
      session.commit(pm::set_word(word, new_word), [&] { show(new_word); });
    }
  }

  /// The first pair of a key whose log and bucket are locked.
  Found find_locked(std::optional<CollectingLog> log, const Locked& locked, Key key,
                    KeyHash hash) const {
    if (const Found found = store_.find_in_bucket(locked, key, hash)) return found;
    return log ? store_.find_in_logs(*log, key, hash) : Found{};
  }

  /// With the locks of the key's log and its bucket. False if the key is not there.
  bool erase_locked(std::optional<CollectingLog> log, const Locked& locked, Key key, KeyHash hash) {
    bool any = false;
    if (log) {
      any |= kill_in_log(*log, key, hash);
      any |= kill_in_flight(log->line(), locked, key, hash);
      if (any) pm::on_step("elimda: an erase goes on to the bucket");
    }
    any |= kill_in_d(locked, key, hash);
    any |= kill_in_p(locked, key, hash);
    return any;
  }

  bool kill_in_log(CollectingLog log, Key key, KeyHash hash) {
    LogLine& line = log.line();
    const LogLine::Print print = LogLine::print_of(hash.signature());
    bool any = false;
    for (unsigned i = line.count; i > 0; --i) {
      if (line.print(i - 1) != print) continue;
      const Pair& pair = log.pairs()[i - 1];
      if (!store_.words.is_key(pm::load(pair.key), key, hash)) continue;
      const std::uint64_t bit = CollectingLog::dead_bit(i - 1);
      store_.words.kill({&log.dead_word(i - 1), bit, bit}, load(pair),
                        [&] { line.set_print(i - 1, 0); });
      any = true;
    }
    return any;
  }

  /// In the unit that is on its way to the DRAM table. Pairs of it that have come to the bucket are
  /// killed there, too: they have the same strings.
  bool kill_in_flight(const LogLine& line, const Place& place, Key key, KeyHash hash) {
    const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
    if (in_flight == 0) return false;
    bool any = false;
    for (unsigned i = store_.shape.unit_pairs; i > 0; --i) {
      const BackupRef ref = store_.backup.ref(in_flight - 1, i - 1);
      if (!store_.backup.counts(ref)) continue;
      const Pair& pair = store_.backup.pair(ref);
      if (!store_.words.is_key(pm::load(pair.key), key, hash)) continue;
      store_.words.kill(store_.backup.killing(ref), load(pair),
                        [&] { place.bucket->d_kill_ref(ref); });
      store_.backup.forget(ref);
      any = true;
    }
    return any;
  }

  bool kill_in_d(const Place& place, Key key, KeyHash hash) {
    const Bucket& bucket = *place.bucket;
    const std::uint8_t print = Bucket::print_of(hash.signature());
    bool any = false;
    for (unsigned i = bucket.d_count(); i > 0; --i) {
      if (bucket.d_print(i - 1) != print) continue;
      if (!store_.words.is_key(bucket.d_key(i - 1), key, hash)) continue;
      kill_d_pair(place, i - 1);
      any = true;
    }
    return any;
  }

  /// A recent pair came when the key had no other.
  bool kill_in_p(const Place& place, Key key, KeyHash hash) {
    const bool recent = place.bucket->find_recent(hash.signature(), [&](unsigned i) {
      const unsigned slot = place.bucket->recent_slot(i);
      if (!store_.words.is_key(pm::load(store_.table.pair(place, slot).key), key, hash))
        return false;
      kill_in_slot(place, slot, [&] { place.bucket->kill_recent(i); });
      return true;
    });
    return recent || kill_entries(place, key, hash);
  }

  bool kill_entries(const Place& place, Key key, KeyHash hash) {
    std::vector<unsigned> more;  // beside the first one: rarely any
    std::optional<unsigned> first;
    place.bucket->find_entry(store_.code, hash.signature(), [&](unsigned i, std::uint16_t entry) {
      if (store_.code.killed(entry)) return false;
      const Pair& pair = store_.table.pair(place, store_.code.slot(entry));
      if (!store_.words.is_key(pm::load(pair.key), key, hash)) return false;
      if (first)
        more.push_back(i);
      else
        first = i;
      return false;
    });
    for (; !more.empty(); more.pop_back()) kill_p_entry(place, more.back());
    if (first) kill_p_entry(place, *first);
    return first.has_value();
  }

  Store<K>& store_;
  KeyCount& count_;
};

}  // namespace perdix::detail::index::elimda
