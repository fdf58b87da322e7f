// An operation locates the leaf of its key, finds the entry, changes it, and begins again if the
// leaf was replaced meanwhile or another thread was first. The caller of those that do not take an
// epoch::Guard themselves holds one.
#include "index/nbtree/nbtree.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/groups.h"
#include "index/common/limits.h"
#include "index/common/neighbour.h"
#include "index/common/retry.h"
#include "index/nbtree/check.h"
#include "index/nbtree/destroy.h"
#include "index/nbtree/recovery.h"

namespace perdix::detail::index::nbtree {

template <class K>
WordTree<K>::WordTree(pool::IndexHandle handle, const NbTreeOptions& options)
    : handle_(std::move(handle)),
      entries_(pool(), handle_.info().value_kind),
      upkeep_(std::make_unique<Upkeep<K>>(pool(), ready_root<K>(pool(), handle_.root()), entries_,
                                          options)) {
  recover(pool(), keys(), *upkeep_);
  upkeep_->resumer.start(options.resume_in_background);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  entry_.emplace(pool().open_indexes(), *this);
}

template <class K>
void WordTree<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  destroy_index<K>(pool, root, value_kind);
}

/// What the key's leaf has of the key, durably, at a moment when it was at its position. `place` is
/// where to look first, and becomes where it was found.
template <class K>
[[gnu::always_inline]] inline auto WordTree<K>::find_durable(LeafRef<K>& place, Key key,
                                                             Hash16 hash) const -> Lookup {
  Lookup found;  // here, so that it is the result and need not be copied into it
  for (;;) {
    found = entries_.find(*place.leaf, key, hash);
    const std::uint64_t slots = found.slot >= 0 ? std::uint64_t{1} << found.slot : found.dead;
    entries_.persist_unpersisted(*place.leaf, slots);
    if (place.current()) [[likely]]
      return found;
    pm::on_step("nbtree: a leaf that was read is no more at its position");
    place = locate_again(key);
  }
}

template <class K>
[[gnu::always_inline]] inline std::optional<Word> WordTree<K>::find_word(Key key) const {
  LeafRef<K> place = locate(key);
  const Lookup found = find_durable(place, key, Keys::hash16(key));
  return found.slot < 0 ? std::nullopt : std::optional(found.value);
}

/// A lookup waits for memory most of its time (the leaf in DRAM, the line of the entry, the blobs),
/// so the keys of a group take each step together, and their waits overlap.
template <class K>
void WordTree<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  std::array<TopSlot<K>, kGroup> tops;
  std::array<Hash16, kGroup> hashes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    tops[i] = upkeep_->top.floor(keys[i]);
    hashes[i] = Keys::hash16(keys[i]);
    if (tops[i].leaf != nullptr) tops[i].leaf->prefetch();
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Leaf<K>* leaf = tops[i].leaf;
    if (leaf == nullptr) continue;
    const std::uint64_t slots = leaf->taken_for(fingerprint_of(hashes[i])) & leaf->visible_slots();
    if (slots != 0) __builtin_prefetch(&leaf->block().entries[__builtin_ctzll(slots)]);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    LeafRef<K> place = locator_.locate_at(tops[i], keys[i]);
    const Lookup found = find_durable(place, keys[i], hashes[i]);
    out[i] = found.slot < 0 ? std::nullopt : std::optional(found.value);
  }
}

/// Adds pairs with key >= position, until there are `wanted` or almost, and moves `position` to
/// where the first leaf begins that was not looked at. False if there is none.
template <class K>
bool WordTree<K>::read_leaves(ScanBatch& batch, K& position, unsigned wanted) const {
  LeafRef<K> place = locate(position);
  upkeep_->scanner.prefetch_order(*place.leaf);
  for (;;) {
    typename LeafScanner<K>::Order order;
    const unsigned before = batch.added();
    while (!upkeep_->scanner.collect(place, position, wanted - before, order, batch)) {
      batch.truncate(before);
      place = locate_again(position);
    }
    upkeep_->scanner.keep(*place.leaf, order);
    Position<K>* const next = place.leaf->next();
    if (next == nullptr) return false;
    if (batch.added() == wanted) return true;
    position = place.leaf->end();
    batch.require_below(pool(), position);
    if (batch.added() + 1 == wanted) return true;
    // It was the next one at a moment when the leaf was at its position. If it still has a leaf
    // that is not closing, that leaf begins there.
    Leaf<K>* const there = next->leaf.load(std::memory_order_acquire);
    const bool follows = there != nullptr && !is_cold(there) && !there->closing();
    place = follows ? LeafRef<K>{next, there} : locate_again(position);
  }
}

/// As scan_by_batches() wants it.
template <class K>
bool WordTree<K>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  const unsigned count = batch.worth_reading(limit);
  batch.clear();
  const bool more = read_leaves(batch, position, count + 1);
  batch.copy_pairs(pool(), values(), count);
  pool().require_usable();  // what was read may have been there before a sync failed
  if (batch.complete()) return more;
  position = batch.next_key();
  return true;
}

template <class K>
void WordTree<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  const auto read = [this](ScanBatch& batch, K& position, std::size_t left) {
    return read_batch(batch, position, left);
  };
  scan_by_batches<ScanBatch, K>(pool(), from, limit, show, read);
}

/// As OrderedWordEngine wants it, with whole words of keys: leaf by leaf to the left, until one has
/// such a key. `position` is in the leaf that is looked at, and `bound` at its end, or further to
/// the right if keys lie between.
template <class K>
void WordTree<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  K bound(key), position(key);
  for (;;) {
    typename LeafScanner<K>::Order order;
    LeafRef<K> place = locate(position);
    // Before collect_last() validates the place: an anchor, where low bounds of integers are, may
    // become that of another position.
    Key low = place.at->low();
    while (!upkeep_->scanner.collect_last(place, {position, bound, strictly}, order, last)) {
      place = locate_again(position);
      low = place.at->low();
    }
    upkeep_->scanner.keep(*place.leaf, order);
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

template <class K>
bool WordTree<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  const auto attempt = [&]() __attribute__((always_inline)) {
    return try_write(key, value, mode, expected);
  };
  return retry_when_full(pool(), attempt);
}

template <class K>
[[gnu::always_inline]] inline bool WordTree<K>::try_write(Key key, NewValue value, Mode mode,
                                                          const NewValue* expected) {
  const Hash16 hash = Keys::hash16(key);
  const epoch::Guard guard;
  typename PairWriter<K>::NewPair pair;  // after the guard: its claims are given back under it
  for (;;) {
    LeafRef<K> place = locate(key);
    upkeep_->scanner.prefetch_order(*place.leaf);  // which the write carries over
    const Lookup found = find_durable(place, key, hash);
    if (found.slot >= 0) {
      if (mode == Mode::insert) return false;
      if (!value_is(found.value, expected)) return false;
      const Word* only = expected == nullptr ? nullptr : &found.value;
      if (upkeep_->writer.replace({place, found, only}, value, pair)) return true;
    } else {
      if (mode == Mode::update) return false;
      // If it loses against another insert, the key is there the next time.
      if (upkeep_->writer.add(place, key, hash, value, pair)) return true;
    }
  }
}

template <class K>
bool WordTree<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const auto attempt = [&]() __attribute__((always_inline)) { return try_erase(key, expected); };
  const bool erased = retry_when_full(pool(), attempt);
  if (upkeep_->joins.due()) [[unlikely]]
    upkeep_->joins.make_up_in_erase();
  return erased;
}

template <class K>
[[gnu::always_inline]] inline bool WordTree<K>::try_erase(Key key, const NewValue* expected) {
  const Hash16 hash = Keys::hash16(key);
  const epoch::Guard guard;
  for (;;) {
    LeafRef<K> place = locate(key);
    upkeep_->scanner.prefetch_order(*place.leaf);  // which the write carries over
    const Lookup found = find_durable(place, key, hash);
    if (found.slot < 0) return false;
    if (!value_is(found.value, expected)) return false;
    unsigned pairs = 0;
    const Word* only = expected == nullptr ? nullptr : &found.value;
    if (!upkeep_->writer.remove({place, found, only}, pairs)) continue;
    upkeep_->joins.join_if_due(place, pairs);
    return true;
  }
}

template <class K>
bool WordTree<K>::reclaim_space() noexcept {
  bool any = false;
  try {
    any = upkeep_->reserve.free_garbage();
    // What one round of joins frees serves the next one, so the rounds grow. Bounded, since other
    // threads may miss more joins.
    for (auto left = upkeep_->counts.leaves.sum(); left > 0 && upkeep_->joins.due(); --left) {
      if (upkeep_->joins.make_up()) continue;
      if (!upkeep_->reserve.free_garbage()) break;
      any = true;
    }
    any |= upkeep_->reserve.free_garbage();
    any |= upkeep_->reserve.free_pages();
    any |= upkeep_->resumer.free_unresolved();  // last: it needs all leaves, and one may be damaged
  } catch (const std::exception&) {
    // What the ledger names is freed later.
  }
  return any;
}

template <class K>
std::uint64_t WordTree<K>::size() const {
  upkeep_->resumer.require_resumed();
  return static_cast<std::uint64_t>(upkeep_->counts.pairs.sum());
}

template <class K>
IndexStats WordTree<K>::stats() const {
  IndexStats stats;
  stats.pairs = static_cast<std::uint64_t>(upkeep_->counts.pairs.sum());
  const auto leaves = static_cast<std::uint64_t>(upkeep_->counts.leaves.sum());
  const auto small = static_cast<std::uint64_t>(upkeep_->counts.small_leaves.sum());
  stats.leaves = leaves;
  IndexStats signposts;
  if (const auto* tree = upkeep_->signposts.tree()) signposts = tree->stats();
  stats.pm_bytes = sizeof(Root) + signposts.pm_bytes + upkeep_->ledger.page_bytes() +
                   leaves * block_bytes(kCapacity) -
                   small * (block_bytes(kCapacity) - block_bytes(kSmallCapacity)) +
                   static_cast<std::uint64_t>(upkeep_->counts.blob_bytes.sum());
  stats.dram_bytes = sizeof *this + sizeof *upkeep_ + upkeep_->memory.arena().bytes_reserved();
  stats.recovery_seconds = recovery_seconds_;
  stats.resumption_seconds = upkeep_->resumer.seconds();
  stats.resumed =
      upkeep_->resumer.done()
          ? 1
          : std::min(1.0, static_cast<double>(leaves) /
                              static_cast<double>(Signposts<K>::Tree::leaves(signposts)));
  return stats;
}

template <class K>
CheckReport WordTree<K>::check() const {
  return TreeCheck<K>(pool(), entries_, *upkeep_).check();
}

template <class K>
void WordTree<K>::for_each_block(const pool::BlockVisitor& visit) const {
  upkeep_->resumer.require_resumed();
  upkeep_->signposts.finish();
  upkeep_->reserve.give_up();  // else a check would miss what is freed when the index is closed
  const epoch::Guard guard;
  ShownBlocks shown(visit);
  TreeCheck<K>(pool(), entries_, *upkeep_).walk(shown);
}

template class WordTree<std::uint64_t>;
template class WordTree<std::string>;

}  // namespace perdix::detail::index::nbtree
