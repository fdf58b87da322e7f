// How selective a leaf's filter and fingerprints are, and that they never deny a key that is there.
#include <gtest/gtest.h>

#include "index/sptree/mnode.h"

namespace perdix::index::sptree {
namespace {

using Node = Mnode<std::uint64_t>;

Hash16 hash_of(std::uint64_t key) { return Words<std::uint64_t>::hash16(key); }

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
    for (unsigned i = 0; i < kTried; ++i) passed += node.candidates(hash_of(key++)) != 0;
  }
  return static_cast<double>(passed) / (kNodes * kTried);
}

TEST(Filter, NeverDeniesAKeyThatIsThere) {
  Node node(nullptr, 0, 0);
  for (unsigned slot = 0; slot < kLeafPairs; ++slot) {
    node.add(slot, hash_of(slot * 7919));
    for (unsigned i = 0; i <= slot; ++i) {
      EXPECT_TRUE(node.candidates(hash_of(i * 7919)) >> i & 1) << "slot " << i << " of " << slot;
    }
  }
  EXPECT_EQ(node.slots(), kFullBitmap);
}

TEST(Filter, SlotsWithoutABitAreNoCandidates) {
  Node node(nullptr, 0, 0);
  node.add(3, hash_of(42));
  node.bitmap.store(0);
  EXPECT_EQ(node.candidates(hash_of(42)), 0u);
}

TEST(Filter, DeniesMostAbsentKeys) {
  EXPECT_EQ(false_positives(0), 0.0);
  EXPECT_LT(false_positives(32), 0.01);
  EXPECT_LT(false_positives(45), 0.02);
  EXPECT_LT(false_positives(64), 0.12);
}

TEST(FreeSlot, IsTheFirstOfTheColumnWhileThereIsOne) {
  const Hash16 hash = 2 << 8;  // column 2
  std::uint64_t taken = 0;
  for (unsigned row = 0; row < kLeafPairs / kColumns; ++row) {
    EXPECT_EQ(free_slot(taken, hash), row * kColumns + 2);
    taken |= std::uint64_t{1} << free_slot(taken, hash);
  }
  EXPECT_EQ(free_slot(taken, hash), 3u) << "the column is full";
  EXPECT_EQ(free_slot(taken | slots_of_column(3), hash), 0u) << "its partner is full, too";
  EXPECT_EQ(free_slot(kFullBitmap & ~(std::uint64_t{1} << 33), hash), 33u);
  EXPECT_EQ(free_slot(kFullBitmap, hash), kLeafPairs);
}

TEST(Bloom, ForgetsWhenCleared) {
  Bloom bloom;
  bloom.add(hash_of(1));
  bloom.add(0xffff, 0);
  EXPECT_TRUE(bloom.may_contain(hash_of(1)));
  EXPECT_LE(bloom.bits_set(), 2 * Bloom::kBitsPerKey);
  EXPECT_EQ(bloom.slots(0xffff), kFullBitmap) << "one of its column lies in another";
  bloom.add(0x01ff, 4);
  EXPECT_EQ(bloom.slots(0x01ff), slots_of_column(0) | slots_of_column(1)) << "with the partner";
  EXPECT_EQ(bloom.slots(0), slots_of_column(0));
  bloom.clear();
  EXPECT_EQ(bloom.bits_set(), 0u);
  EXPECT_FALSE(bloom.may_contain(hash_of(1)));
  EXPECT_EQ(bloom.slots(0xffff), slots_of_column(3));
}

}  // namespace
}  // namespace perdix::index::sptree
