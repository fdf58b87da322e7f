// How selective a leaf's filter and fingerprints are, and that they never deny a key that is there.
#include <set>

#include <gtest/gtest.h>

#include "index/sptree/mnode.h"

namespace perdix::detail::index::sptree {
namespace {

using Node = Mnode<std::uint64_t>;

Hash16 hash_of(std::uint64_t key) { return Codec<std::uint64_t>::hash16(key); }

/// The share of `tried` absent keys for which a node with `pairs` keys sends a lookup to PM, over
/// many nodes.
double false_positives(unsigned pairs) {
  constexpr unsigned kNodes = 400;
  constexpr unsigned kTried = 500;
  std::uint64_t key = 1, passed = 0;
  for (unsigned n = 0; n < kNodes; ++n) {
    Node node(nullptr, 0, 0);
    for (unsigned i = 0; i < pairs; ++i, ++key)
      node.add(free_slot(node.slots(), hash_of(key)), hash_of(key));
    for (unsigned i = 0; i < kTried; ++i) passed += !node.candidates(hash_of(key++)).empty();
  }
  return static_cast<double>(passed) / (kNodes * kTried);
}

TEST(Filter, NeverDeniesAPresentKey) {
  Node node(nullptr, 0, 0);
  for (unsigned slot = 0; slot < kLeafPairs; ++slot) {
    node.add(slot, hash_of(slot * 7919));
    for (unsigned i = 0; i <= slot; ++i) {
      EXPECT_TRUE(node.candidates(hash_of(i * 7919)).contains(i)) << "slot " << i << " of " << slot;
    }
  }
  EXPECT_EQ(node.slots(), SlotSet::all());
}

TEST(Filter, FreeSlotsAreNoCandidates) {
  for (Hash16 hash = 0; hash < 0xff00; hash = static_cast<Hash16>(hash + 0x80)) {
    Node node(nullptr, 0, 0);
    EXPECT_TRUE(node.candidates(hash).empty());
    const unsigned slot = free_slot(node.slots(), hash);
    node.add(slot, hash);
    EXPECT_EQ(node.candidates(hash), SlotSet::of(slot));
    EXPECT_EQ(node.slots(), SlotSet::of(slot));
    node.remove(slot);
    EXPECT_TRUE(node.candidates(hash).empty());
    EXPECT_TRUE(node.slots().empty());
  }
}

TEST(Filter, FindsWhatOthersKeptOutOfItsColumn) {
  constexpr unsigned kGuestRows = kRows - kGuestRow;
  const Hash16 hash = 0x0542;  // column 5
  Node node(nullptr, 0, 0);
  std::set<unsigned> columns;
  for (unsigned i = 0; i < kLeafPairs; ++i) {
    const unsigned slot = free_slot(node.slots(), hash);
    columns.insert(column_of_slot(slot));
    node.add(slot, hash);
    EXPECT_EQ(node.candidates(hash), node.slots()) << i;
    if (i < kRows) {
      EXPECT_EQ(column_of_slot(slot), 5u);
    } else if (i < kRows + kGuestRows) {
      EXPECT_EQ(column_of_slot(slot), 4u);
    }
    if (i >= kRows && i < kRows + (kColumns - 1) * kGuestRows) {
      EXPECT_GE(slot % kRows, kGuestRow);
    }
  }
  EXPECT_EQ(columns.size(), kColumns);
}

TEST(Filter, DeniesMostAbsentKeys) {
  EXPECT_EQ(false_positives(0), 0.0);
  EXPECT_LT(false_positives(64), 0.01);
  EXPECT_LT(false_positives(90), 0.02);
  EXPECT_LT(false_positives(128), 0.08);
}

TEST(Filter, DeniesNearlyAllOverLeavesAsRandomInsertsLeaveThem) {
  // An absent key meets a leaf of n pairs with a chance that is proportional to 1 / n.
  double weighed = 0, weights = 0;
  for (unsigned pairs = kLeafPairs / 2; pairs <= kLeafPairs; pairs += 4) {
    weighed += false_positives(pairs) / pairs;
    weights += 1.0 / pairs;
  }
  EXPECT_LT(weighed / weights, 0.02);
}

TEST(FreeSlot, IsTheFirstOfTheColumnWhileThereIsOne) {
  const Hash16 hash = 2 << 8;  // column 2
  SlotSet taken;
  for (unsigned row = 0; row < kRows; ++row) {
    EXPECT_EQ(free_slot(taken, hash), 2 * kRows + row);
    taken.add(free_slot(taken, hash));
  }
  EXPECT_EQ(free_slot(taken, hash), 3 * kRows + 15) << "the column is full";
  EXPECT_EQ(free_slot(taken | slots_of_column(3), hash), 15u) << "its partner is full, too";
  EXPECT_EQ(free_slot(taken | slots_of_last_rows(15), hash), 3 * kRows + 14);
  EXPECT_EQ(free_slot(taken | slots_of_column(3) | slots_of_last_rows(13), hash), 12u);
  EXPECT_EQ(free_slot(taken | kGuestSlots, hash), 0u) << "no room for guests";
  EXPECT_EQ(free_slot(SlotSet::all() - SlotSet::of(97), hash), 97u);
  EXPECT_EQ(free_slot(SlotSet::all(), hash), kLeafPairs);
}

TEST(Bloom, ForgetsWhenCleared) {
  Bloom bloom;
  bloom.add(hash_of(1));
  bloom.add(0xffff, 15);
  EXPECT_TRUE(bloom.may_contain(hash_of(1)));
  EXPECT_LE(bloom.bits_set(), 2 * Bloom::kBitsPerKey);
  EXPECT_TRUE(bloom.further(0xffff)) << "one of its column is a far guest";
  EXPECT_FALSE(bloom.anywhere(0xffff));
  bloom.add(0xffff, 6 * kRows + 15);
  EXPECT_FALSE(bloom.anywhere(0xffff)) << "another is near";
  bloom.add(0xffff, 0);
  EXPECT_TRUE(bloom.further(0xffff) && bloom.anywhere(0xffff));
  bloom.add(0x01ff, 15);
  EXPECT_TRUE(bloom.in_partner(0x01ff));
  EXPECT_FALSE(bloom.further(0x01ff));
  EXPECT_FALSE(bloom.in_partner(0));
  bloom.clear();
  EXPECT_EQ(bloom.bits_set(), 0u);
  EXPECT_FALSE(bloom.may_contain(hash_of(1)));
  EXPECT_FALSE(bloom.further(0xffff));
  EXPECT_FALSE(bloom.in_partner(0x01ff));
}

TEST(Bloom, AllBitsOfTheFilterAreUsedAndNoFlags) {
  Bloom bloom;
  for (unsigned hash = 0; hash <= 0xffff; ++hash) bloom.add(static_cast<Hash16>(hash));
  EXPECT_EQ(bloom.bits_set(), 240u);
  for (unsigned column = 0; column < kColumns; ++column) {
    EXPECT_FALSE(bloom.in_partner(static_cast<Hash16>(column << 8)));
    EXPECT_FALSE(bloom.further(static_cast<Hash16>(column << 8)));
  }
}

}  // namespace
}  // namespace perdix::detail::index::sptree
