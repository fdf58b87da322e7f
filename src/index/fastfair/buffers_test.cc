// Write buffers of FAST&FAIR: merges in place and out of place, on trees of few keys; what a change
// of the technique, a restart and a full pool leave. What the calls do is tested by
// tests/conformance, for all engines alike.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "index/fastfair/test_tree.h"
#include "util/random.h"

namespace perdix::detail::index::fastfair {
namespace {

constexpr unsigned kFew = 6;  // a fanout that makes high trees
constexpr FastFairOptions kBuffered{.dram_budget = kUnlimited, .technique = Technique::b};
constexpr FastFairOptions kOutOfPlace{.dram_budget = kUnlimited, .technique = Technique::bo};

using BufferedNumbers = TestTree<Number, Number>;

/// The leaves from the left.
std::vector<Node*> leaves_in(BufferedNumbers& tree) {
  Node* node = &tree.root();
  while (meta_of(*node).level > 0) node = &tree.node_at(node->leftmost);
  std::vector<Node*> leaves = {node};
  while (leaves.back()->next != 0) leaves.push_back(&tree.node_at(leaves.back()->next));
  return leaves;
}

TEST(FastFairBuffers, HalfOfALeafWaitsInIt) {
  for (const FastFairOptions& options : {kBuffered, kOutOfPlace}) {
    BufferedNumbers tree(kCapacity, options);
    for (Number key = 0; key < kCapacity / 2; ++key) tree->put(key, key);
    Node* const leaf = &tree.root();
    EXPECT_EQ(meta_of(*leaf).count, 0U);
    EXPECT_EQ(tree->size(), kCapacity / 2);
    tree->put(1000, 1);  // into the buffer again, which is merged before
    EXPECT_EQ(meta_of(tree.root()).count, kCapacity / 2);
    EXPECT_EQ(&tree.root() == leaf, options.technique == Technique::b);
    tree.expect_sound_pool();
  }
}

TEST(FastFairBuffers, AscendingLoadFillsLeavesCompletely) {
  for (const FastFairOptions& options : {kBuffered, kOutOfPlace}) {
    BufferedNumbers tree(kCapacity, options);
    for (Number key = 0; key < 100 * kCapacity; ++key) tree->put(key, key);
    EXPECT_LE(tree->stats().leaves, 100U);
    tree.expect_sound();
  }
}

TEST(FastFairBuffers, OtherLoadsFillHalfOrMore) {
  util::Random random(1);
  for (const FastFairOptions& options : {kBuffered, kOutOfPlace}) {
    BufferedNumbers tree(kCapacity, options);
    constexpr Number kKeys = 200 * kCapacity;
    for (Number i = 0; i < kKeys; ++i) tree->put(random(), i);
    EXPECT_LE(tree->stats().leaves, 2 * kKeys / kCapacity + 1);
    tree.expect_sound();
  }
}

TEST(FastFairBuffers, EmptiedLeavesAreFreed) {
  for (const FastFairOptions& options : {kBuffered, kOutOfPlace}) {
    BufferedNumbers tree(kFew, options);
    for (unsigned order = 0; order < 3; ++order) {
      std::vector<Number> keys(2000);
      tree.expect_sound();  // all chains are adopted then, and leaves can be merged
      for (Number i = 0; i < keys.size(); ++i) tree->put(keys[i] = i, i);
      if (order == 1) std::reverse(keys.begin(), keys.end());
      for (const Number key : keys) ASSERT_TRUE(tree->erase(key));
      EXPECT_EQ(tree->size(), 0U);
      EXPECT_LE(tree->stats().leaves, 2U) << "order " << order;
      tree.expect_sound_pool();
    }
  }
}

/// The numbers that own chains in the log.
TEST(FastFairBuffers, NumbersOfLeavesNeverComeBack) {
  BufferedNumbers tree(kFew, kOutOfPlace);
  std::map<Number, const Node*> owners;
  util::Random random(3);
  for (unsigned round = 0; round < 20; ++round) {
    std::set<Number> now;
    for (unsigned i = 0; i < 100; ++i) tree->put(random.below(100'000), i);
    if (round % 5 == 4) tree.reopen();
    for (const Node* leaf : leaves_in(tree)) {
      const Number number = number_of(*leaf);
      if (number == 0) continue;
      EXPECT_TRUE(now.insert(number).second);
      const auto [known, is_new] = owners.emplace(number, leaf);
      EXPECT_EQ(known->second, leaf) << "number " << number;
    }
  }
  EXPECT_GT(owners.size(), 100U);
}

/// Buffers for a few leaves only, which must change hands.
TEST(FastFairBuffers, TakesBuffersFromIdleLeaves) {
  BufferedNumbers tree(kCapacity, {.dram_budget = 3000, .technique = Technique::b});
  std::map<Number, Number> model;
  for (Number part = 0; part < 40; ++part) {
    for (Number i = 0; i < 300; ++i) {
      const Number key = part * 1000 + i * 7 % 1000;
      tree->put(key, i), model[key] = i;
    }
  }
  expect_same(tree, model);
  tree.expect_sound_pool();
}

/// Opened without buffers it has the one that its chain needs.
TEST(FastFairBuffers, AFullLeafIsMergedBeforeItIsSplit) {
  BufferedNumbers tree(kFew, kBuffered);
  std::map<Number, Number> model;
  for (Number key = 10; key <= 70; key += 10) tree->put(key, key), model[key] = key;
  ASSERT_EQ(meta_of(tree.root()).count, kFew);  // and 70 in the buffer
  tree.set_options({.resume_in_background = false});
  tree.reopen();
  tree->put(5, 5), model[5] = 5;
  for (const auto& [key, value] : model) EXPECT_EQ(tree->get(key), value);
  expect_same(tree, model);
  tree.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
