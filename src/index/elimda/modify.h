// Update and erase: the pairs of a key may lie in every layer, and be moving to the next one.
//
// While the lock of the key's bucket is held, no pair of the key enters that bucket, moves within
// it or leaves it. While the lock of its log is held too, no pair of the key enters the index. An
// update replaces the first value, in place (ElimDa paper, 3.1). An erase kills all, the youngest
// first: so the last kill is the commit, and neither a crash nor a reader finds a duplicate whose
// first value is gone.
#pragma once

#include <array>

#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

/// Replaces the value of a key that is there, if it is `expected` (null: any).
template <class K>
auto WordIndex<K>::replace(Key key, KeyHash hash, NewValue value, const NewValue* expected)
    -> Replaced {
  const Replaced in_bucket = replace_in_bucket(lock_bucket(hash), key, hash, value, expected);
  if (in_bucket != Replaced::absent || logs_.set() == nullptr) return in_bucket;
  pm::on_step("elimda: an update goes on to the logs");
  const CollectingLog log = logs_.set()->log_of(hash);
  const std::lock_guard lock(log.line().lock);
  if (log.line().retired) return Replaced::absent;  // the caller looks again
  const Locked locked = lock_bucket(hash);          // it may have come into the bucket in between
  const Replaced now = replace_in_bucket(locked, key, hash, value, expected);
  return now == Replaced::absent ? replace_in_logs(log, key, hash, value, expected) : now;
}

template <class K>
auto WordIndex<K>::replace_in_bucket(const Locked& locked, Key key, KeyHash hash, NewValue value,
                                     const NewValue* expected) -> Replaced {
  Bucket& bucket = *locked.bucket;
  if (const Found found = find_in_p(locked, key, hash)) {
    if (!value_is(found, expected)) return Replaced::differs;
    set_value_in_p(bucket, *found.word, value);
    return Replaced::yes;
  }
  if (const Found found = find_in_d(locked, key, hash)) {
    if (!value_is(found, expected)) return Replaced::differs;
    set_value(backup_.pair(bucket.d_ref(found.at)).value, value,
              [&](Word word) { bucket.d_set_value(found.at, word); });
    return Replaced::yes;
  }
  return Replaced::absent;
}

/// Readers of a P-bucket see the value before it is durable: they are told.
template <class K>
void WordIndex<K>::set_value_in_p(Bucket& bucket, std::uint64_t& word, NewValue value) {
  if (volatile_caches_) bucket.unpersisted().fetch_add(1);
  try {
    set_value(word, value, [](Word) {});
  } catch (...) {
    if (volatile_caches_) bucket.unpersisted().fetch_sub(1);
    throw;
  }
  if (volatile_caches_) bucket.unpersisted().fetch_sub(1);
}

/// The caller holds the lock of the log, and of the key's bucket, which does not have the key.
template <class K>
auto WordIndex<K>::replace_in_logs(CollectingLog log, Key key, KeyHash hash, NewValue value,
                                   const NewValue* expected) -> Replaced {
  const Found found = find_in_logs(log, key, hash);
  if (!found) return Replaced::absent;
  if (!value_is(found, expected)) return Replaced::differs;
  set_value(*found.word, value, [](Word) {});
  return Replaced::yes;
}

/// Stores a value in its word, durably. Then show(word) makes it visible where readers go by a copy
/// of the word: before the old value may be used again.
template <class K>
template <class Show>
void WordIndex<K>::set_value(std::uint64_t& word, NewValue value, Show show) {
  if (codec_.is_inline()) {
    pm().publish(word, value.word());  // the commit
    show(value.word());
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word old_word = pm::load(word);
    const Word new_word = codec_.write(session, value);
    if (new_word == old_word) return;  // both are empty
    codec_.free(session, old_word);
    session.commit(pm::set_word(word, new_word), [&] { show(new_word); });
  }
}

template <class K>
bool WordIndex<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const KeyHash hash = hash_of(key);
  const epoch::Guard guard;
  if (!find(key, hash)) return false;
  std::unique_lock<util::SpinLock> lock;
  const std::optional<CollectingLog> log = lock_log(lock, hash);
  const Locked locked = lock_bucket(hash);
  if (expected != nullptr) {
    const Found first = find_locked(log, locked, key, hash);
    if (!first || !value_is(first, expected)) return false;
  }
  CountedWrite write(begun_);
  if (!erase_locked(log, locked, key, hash)) return false;
  write.done(removed_);
  return true;
}

/// Locks the log of a hash; returns nothing if the index has no logs.
template <class K>
auto WordIndex<K>::lock_log(std::unique_lock<util::SpinLock>& lock, KeyHash hash) const
    -> std::optional<CollectingLog> {
  while (const LogSet* logs = logs_.set()) {
    const CollectingLog log = logs->log_of(hash);
    lock = std::unique_lock(log.line().lock);
    if (!log.line().retired) return log;
    pm::on_step("elimda: a writer meets a log that is retired");
    lock.unlock();
  }
  return std::nullopt;
}

/// The first pair of a key whose log and bucket are locked.
template <class K>
auto WordIndex<K>::find_locked(std::optional<CollectingLog> log, const Locked& locked, Key key,
                               KeyHash hash) const -> Found {
  if (const Found found = find_in_bucket(locked, key, hash)) return found;
  return log ? find_in_logs(*log, key, hash) : Found{};
}

/// With the locks of the key's log and its bucket. False if the key is not there.
template <class K>
bool WordIndex<K>::erase_locked(std::optional<CollectingLog> log, const Locked& locked, Key key,
                                KeyHash hash) {
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

template <class K>
bool WordIndex<K>::kill_in_log(CollectingLog log, Key key, KeyHash hash) {
  LogLine& line = log.line();
  const LogLine::Print print = LogLine::print_of(hash.signature());
  bool any = false;
  for (unsigned i = line.count; i > 0; --i) {
    if (line.print(i - 1) != print) continue;
    const Pair& pair = log.pairs()[i - 1];
    if (!keys_.equal(pm::load(pair.key), key, hash.signature())) continue;
    const std::uint64_t bit = CollectingLog::dead_bit(i - 1);
    kill({&log.dead_word(i - 1), bit, bit}, {pm::load(pair.key), pm::load(pair.value)},
         [&] { line.set_print(i - 1, 0); });
    any = true;
  }
  return any;
}

/// In the unit that is on its way to the DRAM table. Pairs of it that have come to the bucket are
/// killed there, too: they have the same strings.
template <class K>
bool WordIndex<K>::kill_in_flight(const LogLine& line, const Place& place, Key key, KeyHash hash) {
  const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
  if (in_flight == 0) return false;
  bool any = false;
  for (unsigned i = shape_.unit_pairs; i > 0; --i) {
    const BackupRef ref = backup_.ref(in_flight - 1, i - 1);
    if (!backup_.counts(ref)) continue;
    const Pair& pair = backup_.pair(ref);
    if (!keys_.equal(pm::load(pair.key), key, hash.signature())) continue;
    kill({&backup_.word(ref), backup_.bit(ref), 0}, {pm::load(pair.key), pm::load(pair.value)},
         [&] { place.bucket->d_kill_ref(ref); });
    backup_.forget(ref);
    any = true;
  }
  return any;
}

template <class K>
bool WordIndex<K>::kill_in_d(const Place& place, Key key, KeyHash hash) {
  const Bucket& bucket = *place.bucket;
  const std::uint8_t print = Bucket::print_of(hash.signature());
  bool any = false;
  for (unsigned i = bucket.d_count(); i > 0; --i) {
    if (bucket.d_print(i - 1) != print) continue;
    if (!keys_.equal(bucket.d_key(i - 1), key, hash.signature())) continue;
    kill_d_pair(place, i - 1);
    any = true;
  }
  return any;
}

/// Kills a D pair, first in PM.
template <class K>
void WordIndex<K>::kill_d_pair(const Place& place, unsigned i) {
  const BackupRef ref = place.bucket->d_ref(i);
  kill({&backup_.word(ref), backup_.bit(ref), 0},
       {place.bucket->d_key(i), place.bucket->d_value(i)}, [&] { place.bucket->d_kill(i); });
  backup_.forget(ref);
}

template <class K>
bool WordIndex<K>::kill_in_p(const Place& place, Key key, KeyHash hash) {
  std::vector<unsigned> more;  // beside the first one: rarely any
  std::optional<unsigned> first;
  place.bucket->find_entry(code_, hash.signature(), [&](unsigned i, std::uint16_t entry) {
    if (code_.killed(entry)) return false;
    const Pair& pair = p_pair(place, code_.slot(entry));
    if (!keys_.equal(pm::load(pair.key), key, hash.signature())) return false;
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

template <class K>
void WordIndex<K>::kill_p_entry(const Place& place, unsigned entry) {
  const unsigned slot = code_.slot(place.bucket->entry(entry));
  const Pair& pair = p_pair(place, slot);
  kill({&table_.live_word(place.segment->offset, place.at, slot), PmTable::live_bit(slot), 0},
       {pm::load(pair.key), pm::load(pair.value)}, [&] { place.bucket->kill_entry(code_, entry); });
}

/// Changes the bit that says whether a pair counts, durably, and frees its strings. In between
/// unlink() hides it from readers, which could still come to them.
template <class K>
template <class Unlink>
void WordIndex<K>::kill(const pm::Change& change, const Pair& pair, Unlink unlink) {
  if (Keys::blobs(pair.key) + codec_.blobs(pair.value) == 0) {
    commit(change);
    return unlink();
  }
  alloc::Session session = pool_.allocator().session();
  Keys::free(session, pair.key);
  codec_.free(session, pair.value);
  commit(session, change, unlink);
}

}  // namespace perdix::detail::index::elimda
