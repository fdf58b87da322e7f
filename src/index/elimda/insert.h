// insert_ahead, insert, put: a new pair's way into the index.
//
// With collecting logs (ElimDa paper, 3.3) a pair is appended to its log; a log that is full is
// flushed first (relocate.h). insert_ahead does not look the key up. insert and put look it up
// first, without a lock, and append only if nothing was appended to the log since the lookup began.
// So one of several concurrent inserts of a key wins. Without collecting logs (3.7: volatile
// caches) the pair goes straight to the backup log and the DRAM table, under its bucket's lock, and
// insert_ahead looks the key up too: a lookup costs less than a pair in PM.
#pragma once

#include <array>

#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/elimda/bits.h"
#include "index/elimda/elimda.h"
#include "util/stripe.h"

namespace perdix::detail::index::elimda {

/// All calls that write a value. Returns whether the call wrote it. `expected`, if it is not null:
/// an existing value is replaced only if it equals this. Throws too_large, out_of_space, bad_alloc.
template <class K>
bool WordIndex<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(pool_, [&] {
    const epoch::Guard guard;
    const KeyHash hash = hash_of(key);
    return logs_.set() != nullptr ? write_logged(key, hash, value, mode, expected)
                                  : write_direct(key, hash, value, mode, expected);
  });
}

template <class K>
[[gnu::always_inline]] inline bool WordIndex<K>::write_logged(Key key, KeyHash hash, NewValue value,
                                                              Mode mode, const NewValue* expected) {
  for (;;) {
    const CollectingLog log = logs_.set()->log_of(hash);
    const std::uint32_t appends = log.line().appends.load(std::memory_order_acquire);
    if (mode != Mode::ahead) {
      if (find(key, hash)) {
        if (mode == Mode::insert) return false;
        const Replaced replaced = replace(key, hash, value, expected);
        if (replaced != Replaced::absent) return replaced == Replaced::yes;
        continue;  // the key was erased in between
      }
      if (mode == Mode::update) return false;
    }
    if (const std::optional<bool> done = append(log, key, hash, value, mode, appends)) return *done;
  }
}

/// Appends a pair to its log, and flushes the log first if it is full. Returns true once the pair
/// is in the log. Returns nothing, without an effect on the key, if the caller has to look the key
/// up again: another pair was appended since the caller read `appends` (insert_ahead does not
/// care), this call had to wait for an earlier flush of the log or complete it, or the log was
/// retired.
template <class K>
std::optional<bool> WordIndex<K>::append(CollectingLog log, Key key, KeyHash hash, NewValue value,
                                         Mode mode, std::uint32_t appends) {
  LogLine& line = log.line();
  std::unique_lock lock(line.lock);
  if (mode != Mode::ahead && line.appends.load(std::memory_order_relaxed) != appends) {
    pm::on_step("elimda: an insert looks again");
    return std::nullopt;
  }
  std::optional<Flush> flush;
  if (line.count == shape_.unit_pairs && !begin_flush(flush, lock, log)) return std::nullopt;
  try {
    append_counted(log, key, hash, value, mode);
  } catch (...) {
    lock.unlock();
    if (flush) finish_flush(*flush);
    throw;
  }
  lock.unlock();
  if (flush) {
    finish_flush(*flush);
    grow_logs();
  }
  return true;
}

template <class K>
[[gnu::always_inline]] inline void WordIndex<K>::append_counted(CollectingLog log, Key key,
                                                                KeyHash hash, NewValue value,
                                                                Mode mode) {
  if (mode == Mode::ahead) {
    append_pair(log, key, hash, value);
    // The pair may be a duplicate, so the next size() counts again. append_pair() ends with a full
    // barrier: if a concurrent count has missed the pair, this load sees the state that it has set.
    if (count_state_.load() != CountState::unknown) count_state_.store(CountState::unknown);
  } else {
    CountedWrite write(begun_);
    append_pair(log, key, hash, value);
    write.done(added_);
  }
}

/// Stores a pair of integers; not flushed.
template <class K>
void WordIndex<K>::store_integers(Pair& pair, Key key, NewValue value) const {
  if constexpr (Keys::kInline) {
    pm().store(pair.key, key);
    pm().store(pair.value, value.word());
  }
}

/// Appends to a log that is locked and has room. There are logs only where a store is durable once
/// it is visible, in the order of the stores: so nothing is flushed. The barrier of `appends` makes
/// the commit visible before the call returns.
template <class K>
void WordIndex<K>::append_pair(CollectingLog log, Key key, KeyHash hash, NewValue value) {
  LogLine& line = log.line();
  const unsigned i = line.count;
  Pair& pair = log.pairs()[i];
  std::uint64_t& word = log.word();
  auto head = LogWord::unpack(pm::load(word));
  head.count = static_cast<std::uint16_t>(i + 1);
  if (all_inline()) {
    store_integers(pair, key, value);
    pm().store(word, head.pack());  // the commit
  } else {
    append_strings(pair, key, hash, value, pm::set_word(word, head.pack()));
  }
  line.count = head.count;
  line.set_print(i, LogLine::print_of(hash.signature()));
  pm::on_step("elimda: a pair was appended");
  // After the pair can be found: an insert that knows this number has seen the pair.
  line.appends.fetch_add(1);
}

/// Stores a pair with a string, and commits it. Apart, so that appends of integers stay small.
template <class K>
[[gnu::noinline]] void WordIndex<K>::append_strings(Pair& pair, Key key, KeyHash hash,
                                                    NewValue value, const pm::Change& commit) {
  alloc::Session session = pool_.allocator().session();
  pm().store(pair.key, keys_.write(session, key, hash.signature()));
  pm().store(pair.value, codec_.write(session, value));
  session.commit(commit);
}

/// write() of an index without collecting logs. Looks the key up without a lock first, then under
/// its bucket's lock.
template <class K>
bool WordIndex<K>::write_direct(Key key, KeyHash hash, NewValue value, Mode mode,
                                const NewValue* expected) {
  for (;;) {
    const bool there = static_cast<bool>(find(key, hash));
    if (there ? mode == Mode::insert || mode == Mode::ahead : mode == Mode::update) return false;
    Locked locked = lock_bucket(hash);
    if (find_in_bucket(locked, key, hash)) {
      if (mode == Mode::insert || mode == Mode::ahead) return false;
      return replace_in_bucket(locked, key, hash, value, expected) == Replaced::yes;
    }
    if (mode == Mode::update) return false;
    if (!locked.bucket->d_full()) {
      add_direct(locked, key, hash, value);
      return true;
    }
    make_room(std::move(locked), hash);
  }
}

/// Adds a pair to the backup log and to a D-bucket with room.
template <class K>
void WordIndex<K>::add_direct(const Locked& locked, Key key, KeyHash hash, NewValue value) {
  const BackupRef ref = reserve_direct();
  CountedWrite write(begun_);
  Pair& pair = backup_.pair(ref);
  const pm::Change bit{&backup_.word(ref), backup_.bit(ref), backup_.bit(ref)};
  try {
    if (all_inline()) {
      store_integers(pair, key, value);
      pm().flush(&pair, sizeof pair);  // durable before the commit, by its fence
      commit(bit);
    } else {
      alloc::Session session = pool_.allocator().session();
      pm().store(pair.key, keys_.write(session, key, hash.signature()));
      pm().store(pair.value, codec_.write(session, value));
      pm().flush(&pair, sizeof pair);  // durable before the commit, by its fence
      commit(session, bit, [] {});
    }
  } catch (...) {
    backup_.forget(ref);  // the place stays empty
    throw;
  }
  locked.bucket->d_add({{pm::load(pair.key), pm::load(pair.value)}, ref, hash.signature()});
  write.done(added_);
}

/// Returns a place in the backup log for one pair. The place is counted and is the caller's, which
/// calls forget() if it does not use it. Threads of different stripes fill different units, each
/// from its first place to its last, so that the device can combine the writes (ElimDa paper, 3.7).
/// Throws out_of_space, bad_alloc.
template <class K>
BackupRef WordIndex<K>::reserve_direct() {
  OpenUnit& open = open_units_[util::current_stripe() % kOpenUnits];
  const std::lock_guard lock(open.lock);
  if (!open.open) {
    const Unit unit = backup_.take();
    const UnitWord word{0, UnitWord::kNoLog, next_number_.fetch_add(1, std::memory_order_relaxed)};
    for (unsigned i = 0; i < shape_.unit_words(); ++i)
      pm().store(backup_.words(unit)[i], word.pack());
    // Not flushed: the commit of a pair flushes its word, and a word without bits means nothing.
    open.open = true;
    open.unit = unit;
    open.next = 0;
  }
  const BackupRef ref = backup_.ref(open.unit, open.next);
  // The place is counted before the unit may be given back.
  backup_.count(open.unit, 1);
  if (++open.next == shape_.unit_pairs) {
    open.open = false;
    backup_.unpin(open.unit);
  }
  return ref;
}

/// Changes some bits of a word, by compare-and-swap: other threads may change other bits of the
/// word at the same time, but not these. All that this thread has flushed is durable before the
/// change, and the change is durable when this returns.
template <class K>
void WordIndex<K>::commit(const pm::Change& change) {
  if (pm().commits_as_one()) return pm().commit({&change, 1});
  pm().fence();  // what was flushed comes first
  change_bits(pm(), change);
  pm().persist(change.word, sizeof *change.word);  // the commit
}

/// The same, where the change is also the commit of an allocator session. Calls unlink() when the
/// change is durable and before the grace period of freed blocks begins (alloc/session.h, R4). The
/// session is finished when this returns.
template <class K>
template <class Unlink>
void WordIndex<K>::commit(alloc::Session& session, const pm::Change& change, Unlink unlink) {
  if (pm().commits_as_one()) return session.commit_as_one({&change, 1}, unlink);
  session.commit_when(*change.word, change.mask, change.value);
  session.log();
  change_bits(pm(), change);
  pm().persist(change.word, sizeof *change.word);  // the commit, before blocks are marked free
  session.finish(unlink);
}

}  // namespace perdix::detail::index::elimda
