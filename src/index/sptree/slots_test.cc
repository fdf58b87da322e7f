// Sets of slots, and where slots lie.
#include "index/sptree/slots.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace perdix::detail::index::sptree {
namespace {

SlotSet set_of(std::initializer_list<unsigned> slots) {
  SlotSet set;
  for (const unsigned slot : slots) set.add(slot);
  return set;
}

TEST(SlotSet, VisitsItsSlotsInOrder) {
  for (const std::vector<unsigned>& slots :
       {std::vector<unsigned>{}, {0}, {63}, {64}, {127}, {3, 63, 64, 100, 127}}) {
    SlotSet set;
    for (const unsigned slot : slots) set.add(slot);
    std::vector<unsigned> seen;
    for (const unsigned slot : set) seen.push_back(slot);
    EXPECT_EQ(seen, slots);
    EXPECT_EQ(set.count(), slots.size());
    EXPECT_EQ(set.empty(), slots.empty());
    EXPECT_EQ(set.first(), slots.empty() ? kLeafPairs : slots[0]);
    for (unsigned slot = 0; slot < kLeafPairs; ++slot)
      EXPECT_EQ(set.contains(slot), std::count(slots.begin(), slots.end(), slot) == 1);
  }
}

TEST(SlotSet, Operators) {
  const SlotSet a = set_of({1, 2, 70}), b = set_of({2, 70, 71});
  EXPECT_EQ(a | b, set_of({1, 2, 70, 71}));
  EXPECT_EQ(a & b, set_of({2, 70}));
  EXPECT_EQ(a - b, set_of({1}));
  EXPECT_EQ(~SlotSet::all(), SlotSet());
  EXPECT_EQ((~a).count(), kLeafPairs - 3);
  EXPECT_EQ(SlotSet::of(71), set_of({71}));
}

TEST(Slots, EachHasAPlaceOfItsOwn) {
  std::set<unsigned> places;
  for (unsigned slot = 0; slot < kLeafPairs; ++slot) {
    EXPECT_TRUE(slots_of_column(column_of_slot(slot)).contains(slot));
    EXPECT_LT(place_of_slot(slot), kLeafPairs);
    places.insert(place_of_slot(slot));
  }
  EXPECT_EQ(places.size(), kLeafPairs);
}

TEST(Slots, ALineIsARowOfOneWord) {
  constexpr unsigned kPairsInLine = 4;
  for (unsigned slot = 0; slot < kLeafPairs; ++slot) {
    const unsigned first = slot / 64 * 64 + slot % kRows;  // as flush_pairs() has it
    EXPECT_EQ(place_of_slot(slot) / kPairsInLine, place_of_slot(first) / kPairsInLine);
    EXPECT_EQ(place_of_slot(first) % kPairsInLine, 0u);
    EXPECT_EQ(rows_of_word(SlotSet::of(slot).word(slot / 64)), 1u << slot % kRows);
  }
}

}  // namespace
}  // namespace perdix::detail::index::sptree
