// Opening, a new pair's way into the index (insert_ahead, insert, put), and what an index says of
// itself.
//
// With collecting logs (ElimDa paper, 3.3) a pair is appended to its log; a log that is full is
// flushed first (flush.h). insert_ahead does not look the key up. insert and put look it up
// first, without a lock, and append only if nothing was appended to the log since the lookup began.
// So one of several concurrent inserts of a key wins.
//
// Without collecting logs the pair goes to its bucket, under the bucket's lock, and insert_ahead
// looks the key up too: a lookup costs less than a pair in PM. With volatile caches (3.7) the pair
// goes to the backup log and the D-bucket. Where media units do not matter it goes to the next slot
// of the P-bucket, and to the D-bucket only if the P-bucket is full.
#include "index/elimda/elimda.h"

#include <chrono>

#include "epoch/guard.h"
#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/elimda/bits.h"
#include "index/elimda/check.h"
#include "index/elimda/for_each.h"
#include "index/elimda/owned.h"
#include "index/elimda/recovery.h"

namespace perdix::detail::index::elimda {

template <class K>
WordMap<K>::WordMap(pool::IndexHandle handle, const ElimDaOptions& options, const Shape& shape)
    : handle_(std::move(handle)),
      cache_reservation_(CacheReservation::make(options.reserved_cache_ways)),
      store_(handle_.pool(),
             *retry_when_full(handle_.pool(),
                              [&] { return &open_root(handle_.pool(), handle_.root(), shape); }),
             handle_.info().value_kind, options.fingerprint_bits,
             !in_media_units(options.media_units, handle_.pool())),
      changes_(store_, count_),
      segmentation_(store_, changes_),
      relocator_(store_, segmentation_),
      flusher_(store_, relocator_),
      more_logs_(store_),
      drain_first_(store_.pool.reclaimer()) {
  const auto start = std::chrono::steady_clock::now();
  Recovery<K>(store_, flusher_).run();
  if (options.resume_in_background) store_.cold.start();
  entry_.emplace(store_.pool.open_indexes(), *this);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class K>
WordMap<K>::~WordMap() {
  entry_.reset();
  store_.cold.stop();
}

template <class K>
void WordMap<K>::destroy(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind) {
  if (pm::load(word) == pm::kNull) return;
  Store<K> store(pool, root_at(pool, pm::load(word)), value_kind, 16);
  if (!store.words.all_inline()) {
    store.backup.read_all();
    if (pm::load(store.root.log_area) != pm::kNull) {
      store.logs.open();
      store.backup.finish_all_copies(*store.logs.set());
    }
  }
  DroppedBlocks dropped(pool.allocator());
  BlockWalk<K>(store, word, dropped).run();
}

template <class K>
bool WordMap<K>::find(Key key, std::uint64_t& value) const {
  const epoch::Guard guard;
  const Found found = store_.find(key, store_.words.hash_of(key));
  if (!found) return false;
  value = found.value;
  return true;
}

template <class K>
std::optional<Word> WordMap<K>::find_word(Key key) const {
  const Found found = store_.find(key, store_.words.hash_of(key));
  return found ? std::optional<Word>(found.value) : std::nullopt;
}

/// All calls that write a value. Returns whether the call wrote it. `expected`, if it is not null:
/// an existing value is replaced only if it equals this. Throws too_large, out_of_space, bad_alloc.
template <class K>
bool WordMap<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(store_.pool, [&] {
    const epoch::Guard guard;
    const KeyHash hash = store_.words.hash_of(key);
    return store_.logs.set() != nullptr ? write_logged(key, hash, value, mode, expected)
                                        : write_direct(key, hash, value, mode, expected);
  });
}

template <class K>
[[gnu::always_inline]] inline bool WordMap<K>::write_logged(Key key, KeyHash hash, NewValue value,
                                                            Mode mode, const NewValue* expected) {
  for (;;) {
    const CollectingLog log = store_.logs.set()->log_of(hash);
    const std::uint32_t appends = log.line().appends.load(std::memory_order_acquire);
    if (mode != Mode::ahead) {
      if (store_.find(key, hash)) {
        if (mode == Mode::insert) return false;
        const Replaced replaced = changes_.replace(key, hash, value, expected);
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
std::optional<bool> WordMap<K>::append(CollectingLog log, Key key, KeyHash hash, NewValue value,
                                       Mode mode, std::uint32_t appends) {
  LogLine& line = log.line();
  std::unique_lock lock(line.lock);
  if (mode != Mode::ahead && line.appends.load(std::memory_order_relaxed) != appends) {
    pm::on_step("elimda: an insert looks again");
    return std::nullopt;
  }
  std::optional<Flush> flush;
  if (line.count == store_.shape.unit_pairs && !flusher_.begin(flush, lock, log))
    return std::nullopt;
  try {
    append_counted(log, key, hash, value, mode);
  } catch (...) {
    lock.unlock();
    if (flush) flusher_.finish(*flush);
    throw;
  }
  lock.unlock();
  if (flush) {
    flusher_.finish(*flush);
    more_logs_.grow();
  }
  return true;
}

template <class K>
[[gnu::always_inline]] inline void WordMap<K>::append_counted(CollectingLog log, Key key,
                                                              KeyHash hash, NewValue value,
                                                              Mode mode) {
  if (mode == Mode::ahead) {
    append_pair(log, key, hash, value);
    count_.forget();  // append_pair() ends with a full barrier
  } else {
    append_pair(log, key, hash, value);
    count_.added();
  }
}

/// Appends to a log that is locked and has room. There are logs only where a store is durable once
/// it is visible, in the order of the stores: so nothing is flushed. The barrier of `appends` makes
/// the commit visible before the call returns.
template <class K>
void WordMap<K>::append_pair(CollectingLog log, Key key, KeyHash hash, NewValue value) {
  LogLine& line = log.line();
  const unsigned i = line.count;
  Pair& pair = log.pairs()[i];
  std::uint64_t& word = log.word();
  auto head = LogWord::unpack(pm::load(word));
  head.count = static_cast<std::uint16_t>(i + 1);
  if (store_.words.all_inline()) {
    store_.words.store_integers(pair, key, value);
    store_.pm().store(word, head.pack());  // the commit
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
[[gnu::noinline]] void WordMap<K>::append_strings(Pair& pair, Key key, KeyHash hash, NewValue value,
                                                  const pm::Change& commit) {
  alloc::Session session = store_.pool.allocator().session();
  store_.words.store_strings(session, pair, key, hash, value);
  session.commit(commit);
}

/// write() of an index without collecting logs. Looks the key up once, under its bucket's lock.
template <class K>
bool WordMap<K>::write_direct(Key key, KeyHash hash, NewValue value, Mode mode,
                              const NewValue* expected) {
  const bool keeps = mode == Mode::insert || mode == Mode::ahead;  // a value that is there
  for (;;) {
    Locked locked = store_.lock_bucket(hash, mode != Mode::update);
    if (store_.straight && mode != Mode::update)  // a slot behind the last costs time only
      __builtin_prefetch(&store_.table.pair(locked, locked.bucket->next_slot()), 1);
    if (keeps) {
      if (store_.find_in_bucket(locked, key, hash)) return false;
    } else {
      const Replaced replaced = changes_.replace_in_bucket(locked, key, hash, value, expected);
      if (replaced != Replaced::absent) return replaced == Replaced::yes;
      if (mode == Mode::update) return false;
    }
    if (store_.straight && locked.bucket->next_slot() < store_.shape.p_pairs) {
      if (locked.bucket->recent_full()) locked.bucket = &relocator_.renew(locked);
      add_to_p(locked, key, hash, value);
      return true;
    }
    if (!locked.bucket->d_full()) {
      add_to_d(locked, key, hash, value);
      return true;
    }
    relocator_.make_room(std::move(locked), hash);
  }
}

/// Adds a pair to the next slot of a P-bucket with room. No other thread changes its live bits.
template <class K>
void WordMap<K>::add_to_p(const Locked& locked, Key key, KeyHash hash, NewValue value) {
  const unsigned slot = locked.bucket->next_slot();
  std::uint64_t& live = store_.table.live_word(locked.segment->offset, locked.at, slot);
  const std::uint64_t bit = PmTable::live_bit(slot);
  store_pair(store_.table.pair(locked, slot), key, hash, value, {&live, bit, bit}, Shared::no);
  pm::on_step("elimda: a pair is in its P-bucket");
  locked.bucket->add_recent(hash.signature());
  count_.added();
}

/// Adds a pair to the backup log and to a D-bucket with room.
template <class K>
void WordMap<K>::add_to_d(const Locked& locked, Key key, KeyHash hash, NewValue value) {
  // Where caches are volatile the device combines writes only of units that are filled in turn.
  const BackupRef ref = direct_.reserve(store_.pm(), store_.shape, store_.backup, hash,
                                        store_.straight ? ChunkLists::kMaxDepth : 0);
  Pair& pair = store_.backup.pair(ref);
  try {
    store_pair(pair, key, hash, value,
               {&store_.backup.word(ref), store_.backup.bit(ref), store_.backup.bit(ref)},
               Shared::yes);
  } catch (...) {
    store_.backup.forget(ref);  // the place stays empty
    throw;
  }
  locked.bucket->d_add({load(pair), ref, hash.signature()});
  count_.added();
}

/// Stores a pair in a free place, then the bit by which it counts, durably.
template <class K>
void WordMap<K>::store_pair(Pair& pair, Key key, KeyHash hash, NewValue value,
                            const pm::Change& bit, Shared shared) {
  if (store_.words.all_inline()) {
    store_.words.store_integers(pair, key, value);
    store_.pm().flush(&pair, sizeof pair);  // durable before the commit, by its fence
    commit_bits(store_.pm(), bit, shared);
  } else {
    alloc::Session session = store_.pool.allocator().session();
    store_.words.store_strings(session, pair, key, hash, value);
    store_.pm().flush(&pair, sizeof pair);  // durable before the commit, by its fence
    commit_bits(store_.pm(), session, bit, [] {});
  }
}

template <class K>
bool WordMap<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const KeyHash hash = store_.words.hash_of(key);
  const epoch::Guard guard;
  return changes_.erase(key, hash, expected);
}

template <class K>
void WordMap<K>::for_each(const PairSink<K>& show) const {
  Walk<K>(store_).show_all(show, values());
}

template <class K>
std::uint64_t WordMap<K>::count_keys() const {
  std::uint64_t keys = 0;
  const auto add = [&](const CopiedPairs<K>& pairs) {
    keys += pairs.pairs.size();
    return Taken{pairs.pairs.size(), true};
  };
  Walk<K>(store_).show_all(add, ValueCodec(store_.pool, Kind::u64));  // words will do
  return keys;
}

template <class K>
std::uint64_t WordMap<K>::size() const {
  return count_.keys([this] { return count_keys(); },
                     [this] {
                       const epoch::Guard guard;
                       return store_.quiet();
                     });
}

template <class K>
CheckReport WordMap<K>::check() const {
  Inspection<K> checker(store_);
  try {
    store_.cold.require_warm();
    const epoch::Guard guard;
    checker.run();
    const std::uint64_t keys = count_keys();
    checker.expect_keys(keys, size());
  } catch (const Error& error) {
    checker.expect(false, "{}", error.what());
  }
  checker.audit_blocks();
  return checker.report();
}

template <class K>
void WordMap<K>::for_each_block(const pool::BlockVisitor& visit) const {
  store_.cold.require_warm();
  const epoch::Guard guard;
  ShownBlocks shown(visit);
  walk<K>(store_, shown);
}

/// Of the segments that are warm. Duplicates count, unless the keys were counted (size()).
template <class K>
IndexStats WordMap<K>::stats() const {
  const epoch::Guard guard;
  IndexStats stats = Census<K>(store_).stats();
  if (count_.known()) stats.pairs = size();
  stats.dram_bytes += sizeof *this;
  stats.load_factor =
      static_cast<double>(stats.pairs) / static_cast<double>(stats.leaves * store_.shape.p_pairs);
  stats.relocations = relocator_.relocations();
  stats.recovery_seconds = recovery_seconds_;
  stats.resumption_seconds = store_.cold.seconds();
  return stats;
}

template class WordMap<std::uint64_t>;
template class WordMap<std::string>;

}  // namespace perdix::detail::index::elimda
