// How the words of a leaf are read and changed (layout.h L2, L4). A thread that changes a leaf
// holds its lock.
#pragma once

#include <cstdint>

#include "index/sptree/layout.h"
#include "pm/access.h"
#include "pm/persist.h"

namespace perdix::detail::index::sptree {

inline pm::Offset successor_of(const Leaf& leaf) { return pm::load(leaf.link) & ~kSelector; }

inline const Pair& pair_at(const Leaf& leaf, unsigned slot) {
  return leaf.pairs[place_of_slot(slot)];
}
inline Pair& pair_at(Leaf& leaf, unsigned slot) { return leaf.pairs[place_of_slot(slot)]; }

/// Prefetches all lines with pairs, for callers that read most of them.
inline void prefetch_pairs(const Leaf& leaf) {
  for (unsigned i = 0; i < kLeafPairs; i += pm::kLineSize / sizeof(Pair)) {
    __builtin_prefetch(&leaf.pairs[i]);
  }
}

/// Asks for the lines that half of the pairs take, which come first where columns are filled
/// evenly.
inline void prefetch_half_for_write(Leaf& leaf) {
  __builtin_prefetch(&leaf, 1);
  for (unsigned i = 0; i < kLeafPairs / 2; i += pm::kLineSize / sizeof(Pair)) {
    __builtin_prefetch(&leaf.pairs[i], 1);
  }
}

/// Slots with a pair.
inline SlotSet slots_of(const Leaf& leaf) {
  const Leaf::Bitmap& bitmap = leaf.bitmaps[pm::load(leaf.link) & kSelector];
  return SlotSet({pm::load(bitmap[0]), pm::load(bitmap[1])});
}

/// The word that has the slot's bit. Changing it adds or takes away this slot alone.
inline std::uint64_t& word_of_slot(Leaf& leaf, unsigned slot) {
  return leaf.bitmaps[pm::load(leaf.link) & kSelector][slot / 64];
}

/// What `link` must become so that the leaf has the slots that are staged, and that successor.
inline std::uint64_t staged_link(const Leaf& leaf, pm::Offset next) {
  return next | (~pm::load(leaf.link) & kSelector);
}

/// Writes slots to the bitmap that does not count. Neither flushed nor fenced: the code that
/// commits them flushes their line, which never holds the commit without what was stored before.
inline void stage(const pm::Persister& pm, Leaf& leaf, SlotSet slots) {
  Leaf::Bitmap& bitmap = leaf.bitmaps[~pm::load(leaf.link) & kSelector];
  for (unsigned i = 0; i < SlotSet::kWords; ++i) pm.store(bitmap[i], slots.word(i));
}

/// Gives the leaf these slots, whose pairs are durable, in one commit.
inline void publish_slots(const pm::Persister& pm, Leaf& leaf, SlotSet slots) {
  stage(pm, leaf, slots);
  pm.publish(leaf.link, staged_link(leaf, successor_of(leaf)));
}

/// Flushes the pairs of these slots, each line once; the caller fences before their bits count. A
/// line is a row of one word's slots.
inline void flush_pairs(const pm::Persister& pm, const Leaf& leaf, SlotSet slots) {
  for (unsigned word = 0; word < SlotSet::kWords; ++word) {
    for (unsigned rows = rows_of_word(slots.word(word)); rows != 0; rows &= rows - 1) {
      const auto row = static_cast<unsigned>(std::countr_zero(rows));
      pm.flush(&pair_at(leaf, 64 * word + row), pm::kLineSize);  // the caller fences
    }
  }
}

static_assert(place_of_slot(64) * sizeof(Pair) == pm::kLineSize);

}  // namespace perdix::detail::index::sptree
