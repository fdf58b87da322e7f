// How the words of a leaf are read and changed (layout.h L2, L4). A thread that changes a leaf
// holds the lock of its middle node.
//
//   slots_of, pair_at            what the leaf has
//   word_of_slot                 its bit commits a change of one slot
//   stage_slots, staged_link     two parts of a change of several slots, or of slots and successor
//   publish_slots                both parts of a change of several slots
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

/// Prefetches, for stores, the lines of the first half of the rows. A leaf whose columns are filled
/// evenly with half as many pairs as it can hold has all of them there.
inline void prefetch_half_for_write(Leaf& leaf) {
  __builtin_prefetch(&leaf, 1);
  for (unsigned i = 0; i < kLeafPairs / 2; i += pm::kLineSize / sizeof(Pair)) {
    __builtin_prefetch(&leaf.pairs[i], 1);
  }
}

/// The slots that hold a pair (L4).
inline SlotSet slots_of(const Leaf& leaf) {
  const Leaf::Bitmap& bitmap = leaf.bitmaps[pm::load(leaf.link) & kSelector];
  return SlotSet({pm::load(bitmap[0]), pm::load(bitmap[1])});
}

/// The word that has the slot's bit. Changing it adds or takes away this slot alone.
inline std::uint64_t& word_of_slot(Leaf& leaf, unsigned slot) {
  return leaf.bitmaps[pm::load(leaf.link) & kSelector][slot / 64];
}

/// The value of `link` that selects the staged slots and leads to the successor `next`. Storing it
/// is the commit.
inline std::uint64_t staged_link(const Leaf& leaf, pm::Offset next) {
  return next | (~pm::load(leaf.link) & kSelector);
}

/// Writes slots to the bitmap that does not count. Neither flushes nor fences: `link` is in the
/// same line, so the flush of the commit takes them along, and the line never holds the commit
/// without them.
inline void stage_slots(const pm::Persister& pm, Leaf& leaf, SlotSet slots) {
  Leaf::Bitmap& bitmap = leaf.bitmaps[~pm::load(leaf.link) & kSelector];
  for (unsigned i = 0; i < SlotSet::kWords; ++i) pm.store(bitmap[i], slots.word(i));
}

/// Gives the leaf these slots, whose pairs are durable, in one commit.
inline void publish_slots(const pm::Persister& pm, Leaf& leaf, SlotSet slots) {
  stage_slots(pm, leaf, slots);
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
