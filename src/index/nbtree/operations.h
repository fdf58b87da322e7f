// Point operations of the tree, reclaim_space(), size() and stats(). nbtree.cc instantiates them.
//
// An operation locates the leaf of its key, finds the entry, changes it, and begins again if the
// leaf was replaced meanwhile or another thread was first. The caller of those that do not take an
// epoch::Guard themselves holds one.
#pragma once

#include <algorithm>

#include <perdix/error.h>

#include "index/common/limits.h"
#include "index/common/neighbour.h"
#include "index/common/retry.h"
#include "index/nbtree/check.h"
#include "index/nbtree/destroy.h"
#include "index/nbtree/get_many.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/recovery.h"

namespace perdix::detail::index::nbtree {

/// What the leaf has of the key. It counts if the leaf still is at its position after that.
template <class K, class Form>
[[gnu::always_inline]] inline Lookup WordTree<K, Form>::find_in(const Leaf<K>& leaf, Key key,
                                                                Hash16 hash) const {
  if constexpr (Form::kMetadataInPm) {
    const std::uint64_t slots = copies_.inserted_for(leaf, fingerprint_of(hash));
    return entries_.find_among(leaf, slots, key, hash);
  } else {
    return entries_.find(leaf, key, hash);
  }
}

/// What the key's leaf has of the key, durably, at a moment when it was at its position. `place` is
/// where to look first, and becomes where it was found.
template <class K, class Form>
[[gnu::always_inline]] inline auto WordTree<K, Form>::find_durable(LeafRef<K>& place, Key key,
                                                                   Hash16 hash) const -> Lookup {
  Lookup found;  // here, so that it is the result and need not be copied into it
  for (;;) {
    found = find_in(*place.leaf, key, hash);
    const std::uint64_t slots = found.slot >= 0 ? std::uint64_t{1} << found.slot : found.dead;
    entries_.persist_unpersisted(*place.leaf, slots);
    if (place.current()) [[likely]]
      return found;
    pm::on_step("nbtree: a leaf that was read is no more at its position");
    conflicts_.add();
    place = locate_again(key);
  }
}

template <class K, class Form>
[[gnu::always_inline]] inline std::optional<Word> WordTree<K, Form>::find_word(Key key) const {
  for (;;) {
    LeafRef<K> place = locate(key);
    const ReadLock lock(place, conflicts_);
    if (lock.late()) continue;
    const Lookup found = find_durable(place, key, Keys::hash16(key));
    return found.slot < 0 ? std::nullopt : std::optional(found.value);
  }
}

/// As scan_by_batches() wants it: what there is in the leaf of a position.
template <class K, class Form>
bool WordTree<K, Form>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  typename LeafScanner<K>::Order order;
  LeafRef<K> place = locate(position);
  upkeep_.scanner.prefetch_order(*place.leaf);
  while (!upkeep_.scanner.collect(place, position, limit, order, batch))
    place = locate_again(position);
  batch.copy_pairs(pool(), codec_, limit);
  upkeep_.scanner.keep(*place.leaf, order);
  pool().require_usable();  // what was read may have been there before a sync failed
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (place.leaf->next() != nullptr) {
    position = place.leaf->end();
    batch.require_below(pool(), position);
  } else {
    return false;
  }
  return true;
}

template <class K, class Form>
void WordTree<K, Form>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  scan_by_batches<ScanBatch, K>(pool(), from, limit, show,
                                [this](ScanBatch& batch, K& position, std::size_t left) {
                                  return read_batch(batch, position, left);
                                });
}

/// As OrderedWordEngine wants it, with whole words of keys: leaf by leaf to the left, until one has
/// such a key. `position` is in the leaf that is looked at, and `bound` at its end, or further to
/// the right if keys lie between.
template <class K, class Form>
void WordTree<K, Form>::find_last(Key key, bool strictly, LastPairs& last) const {
  K bound(key), position(key);
  for (;;) {
    typename LeafScanner<K>::Order order;
    LeafRef<K> place = locate(position);
    // Before collect_last() validates the place: an anchor, where low bounds of integers are, may
    // become that of another position.
    Key low = place.at->low();
    while (!upkeep_.scanner.collect_last(place, {position, bound, strictly}, order, last)) {
      place = locate_again(position);
      low = place.at->low();
    }
    upkeep_.scanner.keep(*place.leaf, order);
    if (place.leaf->next() != nullptr && place.leaf->end() < Key(bound)) {
      position = *predecessor(Key(bound));
      continue;
    }
    if (!last.empty()) return;
    auto before = just_below(low);
    if (!before) return;  // that was the first leaf
    position = std::move(*before);
    bound = K(low);
    strictly = true;
  }
}

template <class K, class Form>
bool WordTree<K, Form>::reclaim_space() noexcept {
  bool any = false;
  try {
    any = upkeep_.reserve.free_garbage();
    // What one round of joins frees serves the next one, so the rounds grow. Bounded, since other
    // threads may miss more joins.
    for (auto left = upkeep_.counts.leaves.sum(); left > 0 && upkeep_.joins.due(); --left) {
      if (upkeep_.joins.make_up()) continue;
      if (!upkeep_.reserve.free_garbage()) break;
      any = true;
    }
    any |= upkeep_.reserve.free_garbage();
    any |= upkeep_.reserve.free_pages();
    any |= upkeep_.resumer.free_unresolved();  // last: it needs all leaves, and one may be damaged
  } catch (const std::exception&) {
    // What the ledger names is freed later.
  }
  return any;
}

template <class K, class Form>
bool WordTree<K, Form>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  const auto attempt = [&]() __attribute__((always_inline)) {
    return try_write(key, value, mode, expected);
  };
  return retry_when_full(pool(), attempt);
}

template <class K, class Form>
[[gnu::always_inline]] inline bool WordTree<K, Form>::try_write(Key key, NewValue value, Mode mode,
                                                                const NewValue* expected) {
  const Hash16 hash = Keys::hash16(key);
  const epoch::Guard guard;
  NewPair pair;  // after the guard, so that its claims are given back under the guard
  for (;;) {
    LeafRef<K> place = locate(key);
    const WriteLock lock(place, conflicts_);
    if (lock.late()) continue;
    const Lookup found = find_durable(place, key, hash);
    if (found.slot >= 0) {
      if (mode == Mode::insert) return false;
      if (!value_is(found.value, expected)) return false;
      if (!codec_.is_inline()) name_replaced_blob(pair, found.value);
      load_pair(pair, nullptr, hash, value);
      const Word* only = expected == nullptr ? nullptr : &found.value;
      if (!replace({place, static_cast<unsigned>(found.slot), only}, pair)) continue;
    } else {
      if (mode == Mode::update) return false;
      load_pair(pair, &key, hash, value);
      const InsertOutcome outcome = add(place, key, hash, pair);
      if (outcome != InsertOutcome::inserted)
        continue;  // if it lost to another insert, the key is there now
      upkeep_.counts.pairs.add(1);
    }
    return true;
  }
}

/// Where a fence is a sync: names the blob that an update is likely to replace before the new blob
/// is claimed, so that one sync makes both durable.
template <class K, class Form>
void WordTree<K, Form>::name_replaced_blob(NewPair& pair, Word value) {
  if (!pm().commits_as_one()) return;
  if (!pair.lease) pair.lease.emplace(upkeep_.ledger, Ledger::Purpose::operation);
  pair.lease->make_room(1);
  pair.lease->name(0, codec_.blobs(value) == 0 ? pm::kNull : blob_offset(value));
}

/// Makes the words of a value and, if `key` is not null, of a key.
template <class K, class Form>
[[gnu::always_inline]] inline void WordTree<K, Form>::load_pair(NewPair& pair, const Key* key,
                                                                Hash16 hash, NewValue value) {
  if (!all_inline()) return load_strings(pair, key, hash, value);
  if constexpr (Keys::kInline) pair.key = key != nullptr ? *key : 0;
  pair.value = value.word();
}

// What strings need is not inlined: callers would save registers and make room for it also where
// there are none.

/// load_pair() where one of them is a string: allocates and claims the blobs.
template <class K, class Form>
[[gnu::noinline]] void WordTree<K, Form>::load_strings(NewPair& pair, const Key* key, Hash16 hash,
                                                       NewValue value) {
  if (!pair.lease) pair.lease.emplace(upkeep_.ledger, Ledger::Purpose::operation);
  if (pair.has_value && pair.has_key == (key != nullptr)) return;
  pair.lease->unclaim();
  pair.has_value = pair.has_key = false;
  pair.lease->claim([&](alloc::Session& session) {
    std::array<pm::Offset, 4> blocks{};
    unsigned count = 0;
    if (key != nullptr) {
      pair.key = keys_.write(session, *key, hash);
      if (Keys::blobs(pair.key) != 0) blocks[count++] = blob_offset(pair.key);
    }
    pair.value = codec_.write(session, value);
    if (codec_.blobs(pair.value) != 0) blocks[count++] = blob_offset(pair.value);
    return blocks;
  });
  pair.has_value = true;
  pair.has_key = key != nullptr;
}

/// Adds a key that the leaf does not have, with the words of `pair`. Replaces the leaf if it is
/// full or closing.
template <class K, class Form>
auto WordTree<K, Form>::add(const LeafRef<K>& place, Key key, Hash16 hash, NewPair& pair)
    -> InsertOutcome {
  Leaf<K>& leaf = *place.leaf;
  unsigned slot = 0;
  if (!leaf.take(fingerprint_of(hash), slot, [this] { conflicts_.add(); })) {
    if (Form::kCountsConflicts && leaf.closing()) conflicts_.add();
    upkeep_.structure.replace_leaf(place, &key);
    return InsertOutcome::retry;
  }
  if constexpr (Form::kMetadataInPm) copies_.take(leaf, slot, fingerprint_of(hash));
  Entry& entry = leaf.block().entries[slot];
  pm::on_step("nbtree: a slot is taken");
  // The value comes first: in one line, the order of stores is enough.
  pm().store(entry.value, pair.value);
  Word word = kEmpty;
  if (!pm().compare_exchange(entry.key, word, Layout::pack(pair.key, State::pending))) {
    pm::on_step("nbtree: an insert's slot was closed");
    conflicts_.add();
    if (leaf.closing()) upkeep_.structure.replace_leaf(place, &key);
    return InsertOutcome::retry;  // another thread has closed the slot
  }
  pm::on_step("nbtree: an insert may not be durable");
  pm().persist(&entry, sizeof entry);  // before another thread can see the key
  pm::on_step("nbtree: an insert is pending");
  const InsertOutcome outcome = entries_.decide(leaf, slot, key, hash);
  if constexpr (Form::kMetadataInPm) copies_.show(leaf);
  if (Form::kCountsConflicts && outcome != InsertOutcome::inserted) conflicts_.add();
  if (!all_inline()) {
    if (outcome == InsertOutcome::inserted) {
      upkeep_.counts.add_blobs(entries_, pair.key, pair.value, +1);
      pair.lease->linked();
    } else {
      free_lost_blobs(place, slot, pair);
    }
  }
  return outcome;
}

/// Frees the blobs of an entry whose insert lost or must be repeated.
template <class K, class Form>
[[gnu::noinline]] void WordTree<K, Form>::free_lost_blobs(const LeafRef<K>& place, unsigned slot,
                                                          NewPair& pair) {
  if (Layout::state(pm::load(place.leaf->block().entries[slot].key)) == State::frozen) {
    pm::on_step("nbtree: an insert that lost is frozen");
    try {
      // The entry refers to the blobs until its block is replaced.
      upkeep_.structure.replace_leaf(place, nullptr);
    } catch (...) {
      pm::on_step("nbtree: abandon a stripe");
      pair.lease->abandon();
      throw;
    }
  }
  pair.lease->unclaim();
  pair.has_key = pair.has_value = false;
}

/// Replaces a value in place. Returns false if the entry no longer has the key or the expected
/// value, or is frozen: then the leaf was replaced.
template <class K, class Form>
[[gnu::always_inline]] inline bool WordTree<K, Form>::replace(const Target& target, NewPair& pair) {
  pm::WordPair old{};
  Tries tries(conflicts_);
  const auto prepare = [&](const pm::WordPair&) { tries.next(); };
  const bool done = codec_.is_inline() ? exchange_value(target, pair.value, old, prepare)
                                       : replace_string(target, pair, old);
  if (!done) conflicts_.add();
  if (!done && Layout::state(old.first) == State::frozen) {
    pm::on_step("nbtree: an update meets a frozen entry");
    upkeep_.structure.replace_leaf(target.place, nullptr);
  }
  return done;
}

/// The exchange of a replacement, of integers and of strings: stores `value` durably, and calls
/// prepare(old) before each attempt. `old` becomes the entry as it was.
template <class K, class Form>
template <class Prepare>
[[gnu::always_inline]] inline bool WordTree<K, Form>::exchange_value(const Target& target,
                                                                     Word value, pm::WordPair& old,
                                                                     const Prepare& prepare) {
  Leaf<K>& leaf = *target.place.leaf;
  Entry& entry = leaf.block().entries[target.slot];
  entries_.begin_unpersisted(leaf);  // before the value can be seen
  const bool done = entries_.exchange(entry, target.expected, old, [&](const pm::WordPair& now) {
    prepare(now);
    return pm::WordPair{now.first, value};
  });
  pm::on_step("nbtree: an update may not be durable");
  if (done) pm().persist(&entry.value, sizeof entry.value);  // the commit
  entries_.end_unpersisted(leaf);
  return done;
}

template <class K, class Form>
[[gnu::noinline]] bool WordTree<K, Form>::replace_string(const Target& target, NewPair& pair,
                                                         pm::WordPair& old) {
  pair.lease->make_room(1);
  const auto name_old_value = [&](const pm::WordPair& now) {
    pair.lease->name(0, blob_offset(now.second));
    pm().fence();  // the name is durable before the blob can be unlinked
  };
  if (!exchange_value(target, pair.value, old, name_old_value)) {
    pair.lease->unname();
    return false;
  }
  upkeep_.counts.add_blobs(entries_, 0, old.second, -1);
  upkeep_.counts.add_blobs(entries_, 0, pair.value, +1);
  pair.lease->linked();
  pair.lease->unlinked();
  return true;
}

template <class K, class Form>
bool WordTree<K, Form>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const auto attempt = [&]() __attribute__((always_inline)) { return try_erase(key, expected); };
  const bool erased = retry_when_full(pool(), attempt);
  if (upkeep_.joins.due()) [[unlikely]]
    upkeep_.joins.make_up_in_erase();
  return erased;
}

template <class K, class Form>
[[gnu::always_inline]] inline bool WordTree<K, Form>::try_erase(Key key, const NewValue* expected) {
  const Hash16 hash = Keys::hash16(key);
  const epoch::Guard guard;
  for (;;) {
    LeafRef<K> place = locate(key);
    const WriteLock lock(place, conflicts_);
    if (lock.late()) continue;
    const Lookup found = find_durable(place, key, hash);
    if (found.slot < 0) return false;
    if (!value_is(found.value, expected)) return false;
    unsigned pairs = 0;
    const Word* only = expected == nullptr ? nullptr : &found.value;
    if (!remove({place, static_cast<unsigned>(found.slot), only}, pairs)) continue;
    upkeep_.counts.pairs.add(-1);
    upkeep_.joins.join_if_due(place, pairs);
    return true;
  }
}

/// Erases an entry: its key word is the commit. `pairs` becomes the number of pairs that are left
/// in the leaf. Returns false as replace() does.
template <class K, class Form>
[[gnu::always_inline]] inline bool WordTree<K, Form>::remove(const Target& target,
                                                             unsigned& pairs) {
  pm::WordPair old{};
  Tries tries(conflicts_);
  const auto prepare = [&](const pm::WordPair&) { tries.next(); };
  const bool done =
      all_inline() ? exchange_key(target, pairs, old, prepare) : remove_strings(target, pairs, old);
  if (!done) conflicts_.add();
  if (!done && Layout::state(old.first) == State::frozen) {
    pm::on_step("nbtree: an erase meets a frozen entry");
    upkeep_.structure.replace_leaf(target.place, nullptr);
  }
  return done;
}

/// The exchange of an erase, of integers and of strings: makes the entry dead, durably, and calls
/// prepare(old) before each attempt. `old` becomes the entry as it was.
template <class K, class Form>
template <class Prepare>
[[gnu::always_inline]] inline bool WordTree<K, Form>::exchange_key(const Target& target,
                                                                   unsigned& pairs,
                                                                   pm::WordPair& old,
                                                                   const Prepare& prepare) {
  Leaf<K>& leaf = *target.place.leaf;
  Entry& entry = leaf.block().entries[target.slot];
  entries_.begin_unpersisted(leaf);  // before the key can be missed
  const bool done = entries_.exchange(entry, target.expected, old, [&](const pm::WordPair& now) {
    prepare(now);
    return pm::WordPair{Layout::kDead, now.second};
  });
  pm::on_step("nbtree: an erase may not be durable");
  if (done) {
    pm().persist(&entry.key, sizeof entry.key);  // the commit
    pairs = leaf.hide(target.slot);
  }
  entries_.end_unpersisted(leaf);
  return done;
}

template <class K, class Form>
[[gnu::noinline]] bool WordTree<K, Form>::remove_strings(const Target& target, unsigned& pairs,
                                                         pm::WordPair& old) {
  StripeLease lease(upkeep_.ledger, Ledger::Purpose::operation);
  lease.make_room(2);
  const auto name_pair = [&](const pm::WordPair& now) {
    const Word key = now.first & Layout::kKeyBits;
    lease.name(0, Keys::blobs(key) == 0 ? pm::kNull : blob_offset(key));
    lease.name(1, codec_.blobs(now.second) == 0 ? pm::kNull : blob_offset(now.second));
    pm().fence();  // the names are durable before the blobs can be unlinked
  };
  if (!exchange_key(target, pairs, old, name_pair)) return false;
  upkeep_.counts.add_blobs(entries_, old.first, old.second, -1);
  lease.unlinked();
  return true;
}

template <class K, class Form>
std::uint64_t WordTree<K, Form>::size() const {
  upkeep_.resumer.require_resumed();
  return static_cast<std::uint64_t>(upkeep_.counts.pairs.sum());
}

template <class K, class Form>
IndexStats WordTree<K, Form>::stats() const {
  IndexStats stats;
  stats.pairs = static_cast<std::uint64_t>(upkeep_.counts.pairs.sum());
  const auto leaves = static_cast<std::uint64_t>(upkeep_.counts.leaves.sum());
  const auto small = static_cast<std::uint64_t>(upkeep_.counts.small_leaves.sum());
  stats.leaves = leaves;
  stats.pm_bytes = sizeof(Root) + upkeep_.ledger.page_bytes() +
                   leaves * copies_.block_bytes(kCapacity) -
                   small * (block_bytes(kCapacity) - block_bytes(kSmallCapacity)) +
                   static_cast<std::uint64_t>(upkeep_.counts.blob_bytes.sum());
  stats.dram_bytes = sizeof *this + upkeep_.memory.arena().bytes_reserved();
  stats.recovery_seconds = recovery_seconds_;
  stats.resumption_seconds = upkeep_.resumer.seconds();
  stats.resumed =
      upkeep_.resumer.done()
          ? 1
          : std::min(1.0, static_cast<double>(leaves) / static_cast<double>(leaves_at_opening_));
  return stats;
}

}  // namespace perdix::detail::index::nbtree
