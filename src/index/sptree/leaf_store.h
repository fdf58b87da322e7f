// Pairs in PM: how pairs of a leaf are added, changed and removed, and how many bytes its strings
// take (layout.h L4, L6). Knows nothing of the DRAM side: the caller chooses the slot, and holds
// the leaf's lock.
//
// Each change is durable when its call returns, and commits by one 8-byte store. Where words refer
// to strings, blocks are allocated and freed by the same commit. If a call throws, nothing has
// changed.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "alloc/session.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/sptree/buffer_shape.h"
#include "index/sptree/filter.h"
#include "index/sptree/leaf.h"
#include "pm/access.h"
#include "pool/pool_core.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::sptree {

/// Slots of a leaf that have been filled.
struct Placed {
  SlotSet taken;                                     ///< all of the leaf that are taken now
  bool complete = false;                             ///< there were enough
  std::array<std::uint8_t, kBufferPairs + 1> slots;  ///< of each pair
  std::array<Hash16, kBufferPairs + 1> hashes;
};

template <class K>
class LeafStore {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  LeafStore(pool::PoolCore& pool, Kind value_kind)
      : pool_(pool), keys_(pool), values_(pool, value_kind) {}
  LeafStore(const LeafStore&) = delete;
  LeafStore& operator=(const LeafStore&) = delete;

  const Keys& keys() const { return keys_; }
  const ValueCodec& values() const { return values_; }

  /// Words own no blobs, neither of keys nor of values.
  bool all_inline() const { return Keys::kInline && values_.is_inline(); }

  /// The word of a number.
  static Word inline_word(Key key) { return NewValue(key).word(); }

  // --- Pairs ---

  void add(Leaf& leaf, unsigned slot, Key key, NewValue value, Hash16 hash);
  void replace(Leaf& leaf, unsigned slot, NewValue value);
  void remove(Leaf& leaf, unsigned slot);

  /// Writes pairs into free slots of a leaf, durably; their bits come later (phase 1 of two-phase
  /// insertion). Nothing happens if there are too few slots.
  template <class PairAt>
  Placed place(Leaf& leaf, SlotSet taken, unsigned count, PairAt pair_to_place);

  // --- Statistics ---

  void count_pairs(std::int64_t more) { pairs_.add(more); }
  std::int64_t pairs() const { return pairs_.sum(); }

  /// Of the blobs that a pair refers to.
  std::int64_t bytes_of(Word key, Word value) const {
    return keys_.footprint(key) + values_.footprint(value);
  }
  void count_blobs(Word key, Word value, int sign) { count_bytes(sign * bytes_of(key, value)); }
  void count_bytes(std::int64_t more) { blob_bytes_.add(more); }
  std::int64_t blob_bytes() const { return blob_bytes_.sum(); }

 private:
  void add_strings(Leaf& leaf, unsigned slot, Key key, NewValue value, Hash16 hash);
  void replace_string(Word& word, NewValue value);
  void remove_strings(Leaf& leaf, unsigned slot);
  void store_pair(Pair& pair, Word key, Word value);

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const Keys keys_;
  const ValueCodec values_;
  util::StripedCounter pairs_;
  util::StripedCounter blob_bytes_;
};

// What strings need is not inlined: callers would save registers and make room for it also where
// there are none.

template <class K>
void LeafStore<K>::store_pair(Pair& pair, Word key, Word value) {
  pm().store(pair.key, key);
  pm().store(pair.value, value);
  pm().flush(&pair, sizeof pair);  // fenced before the commit, in the callers
}

/// Adds a pair by two-phase insertion (§4.1): the pair, then its bit. The bit is the commit.
template <class K>
[[gnu::always_inline]] inline void LeafStore<K>::add(Leaf& leaf, unsigned slot, Key key,
                                                     NewValue value, Hash16 hash) {
  if (!all_inline()) return add_strings(leaf, slot, key, value, hash);
  std::uint64_t& bitmap = word_of_slot(leaf, slot);
  const std::uint64_t with_bit = pm::load(bitmap) | std::uint64_t{1} << slot % 64;
  store_pair(pair_at(leaf, slot), inline_word(key), value.word());
  // Phase 1: the pair is durable before its bit can be. Phase 2: the bit is the commit.
  pm().commit(bitmap, with_bit);
}

template <class K>
[[gnu::noinline]] void LeafStore<K>::add_strings(Leaf& leaf, unsigned slot, Key key, NewValue value,
                                                 Hash16 hash) {
  Pair& pair = pair_at(leaf, slot);
  const std::uint64_t bit = std::uint64_t{1} << slot % 64;
  std::uint64_t& bitmap = word_of_slot(leaf, slot);
  alloc::Session session = pool_.allocator().session();
  const PairWords words = write_pair(session, keys_, values_, key, hash, value);
  store_pair(pair, words.key, words.value);
  // Phase 1: pair and blobs are durable before the bit can be. Phase 2: the bit is the commit.
  session.commit({&bitmap, bit, bit});
  count_blobs(pair.key, pair.value, +1);
}

/// Replaces the value of a pair; the value word is the commit.
template <class K>
[[gnu::always_inline]] inline void LeafStore<K>::replace(Leaf& leaf, unsigned slot,
                                                         NewValue value) {
  Word& word = pair_at(leaf, slot).value;
  if (!values_.is_inline()) return replace_string(word, value);
  pm().publish(word, value.word());  // the commit; the key and its bit are durable already
}

template <class K>
[[gnu::noinline]] void LeafStore<K>::replace_string(Word& word, NewValue value) {
  alloc::Session session = pool_.allocator().session();
  const Word old_word = pm::load(word);
  const Word new_word = values_.write(session, value);
  if (new_word == old_word) return;  // both empty: nothing to change
  const std::int64_t old_bytes = values_.footprint(old_word);
  values_.free(session, old_word);
  session.commit(pm::set_word(word, new_word));  // the new blob is durable before
  // Only now: of a large block that is merely reserved the allocator doesn't know the size.
  count_bytes(values_.footprint(new_word) - old_bytes);
}

/// Removes a pair; clearing its bit is the commit.
template <class K>
[[gnu::always_inline]] inline void LeafStore<K>::remove(Leaf& leaf, unsigned slot) {
  if (!all_inline()) return remove_strings(leaf, slot);
  std::uint64_t& bitmap = word_of_slot(leaf, slot);
  const std::uint64_t without_bit = pm::load(bitmap) & ~(std::uint64_t{1} << slot % 64);
  pm().publish(bitmap, without_bit);  // the commit
}

template <class K>
[[gnu::noinline]] void LeafStore<K>::remove_strings(Leaf& leaf, unsigned slot) {
  const Pair& pair = pair_at(leaf, slot);
  const std::uint64_t bit = std::uint64_t{1} << slot % 64;
  std::uint64_t& bitmap = word_of_slot(leaf, slot);
  const std::int64_t bytes = bytes_of(pair.key, pair.value);
  alloc::Session session = pool_.allocator().session();
  Keys::free(session, pm::load(pair.key));
  values_.free(session, pm::load(pair.value));
  session.commit({&bitmap, bit, 0});
  count_bytes(-bytes);
}

template <class K>
template <class PairAt>
Placed LeafStore<K>::place(Leaf& leaf, SlotSet taken, unsigned count, PairAt pair_to_place) {
  Placed placed;
  placed.taken = taken;
  placed.complete = count <= kLeafPairs - taken.count();
  if (!placed.complete) return placed;
  __builtin_prefetch(&leaf, 1);  // for the commit
  for (unsigned i = 0; i < count; ++i) {
    placed.hashes[i] = Keys::hash16_of_word(pair_to_place(i).key);
    const unsigned slot = free_slot(placed.taken, placed.hashes[i]);
    placed.taken.add(slot);
    placed.slots[i] = static_cast<std::uint8_t>(slot);
    __builtin_prefetch(&pair_at(leaf, slot), 1);  // stores to them would wait one by one
  }
  for (unsigned i = 0; i < count; ++i) {
    const Pair pair = pair_to_place(i);
    Pair& place = pair_at(leaf, placed.slots[i]);
    pm().store(place.key, pair.key);
    pm().store(place.value, pair.value);
  }
  flush_pairs(pm(), leaf, placed.taken - taken);
  if (count > 0) pm().fence();  // the pairs are durable before their bits can be
  return placed;
}

}  // namespace perdix::detail::index::sptree
