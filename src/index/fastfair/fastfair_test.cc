// What FAST&FAIR does to its nodes: fill, splits and merges on all levels, what a crash leaves
// unfinished. The behaviour of the calls is tested by tests/conformance, for all engines alike.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "index/fastfair/test_tree.h"

namespace perdix::detail::index::fastfair {
namespace {

using Numbers = TestTree<std::uint64_t, std::uint64_t>;
using Strings = TestTree<std::string, std::string>;

constexpr unsigned kLow = 4;  // a fanout that makes high trees

std::string text_of(std::uint64_t i) { return std::string(i % 5, 'p') + std::to_string(i); }

TEST(FastFairTree, AscendingLoadFillsNodesCompletely) {
  Numbers tree(kCapacity);
  constexpr std::uint64_t kLeaves = 100;
  for (std::uint64_t key = 0; key < kLeaves * kCapacity; ++key) tree->put(key, key);
  EXPECT_EQ(tree->stats().leaves, kLeaves);
  EXPECT_LE(tree->stats().pm_bytes, (kLeaves + kLeaves / (kCapacity - 1) + 2) * sizeof(Node));
  tree.expect_sound();
}

TEST(FastFairTree, OtherLoadsFillAtLeastHalf) {
  constexpr std::uint64_t kKeys = 200 * kCapacity;
  std::mt19937_64 random(1);
  for (const bool descending : {true, false}) {
    Numbers tree(kCapacity);
    for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(descending ? kKeys - i : random(), i);
    EXPECT_LE(tree->stats().leaves, 2 * kKeys / kCapacity + 1) << descending;
    tree.expect_sound();
  }
}

TEST(FastFairTree, EmptiedNodesAreFreed) {
  std::mt19937_64 random(3);
  for (const unsigned fanout : {kLow, kCapacity}) {
    Strings tree(fanout);
    const std::uint64_t before = tree.allocated();
    std::vector<std::uint64_t> keys(3000);
    for (unsigned order = 0; order < 3; ++order) {
      for (std::uint64_t i = 0; i < keys.size(); ++i) tree->put(text_of(keys[i] = i), "value");
      EXPECT_GT(tree.allocated(), before);
      if (order == 1) std::reverse(keys.begin(), keys.end());
      if (order == 2) std::shuffle(keys.begin(), keys.end(), random);
      for (const std::uint64_t key : keys) EXPECT_TRUE(tree->erase(text_of(key)));
      EXPECT_EQ(tree->size(), 0u);
      EXPECT_LE(tree->stats().leaves, 2u) << "order " << order;
      EXPECT_LE(tree.height(), 1u);
      tree.expect_sound_pool();
    }
  }
}

TEST(FastFairTree, QueuesStaySmall) {
  for (const unsigned fanout : {kLow, kCapacity}) {
    Numbers tree(fanout);
    constexpr std::uint64_t kWaiting = 500;
    for (std::uint64_t i = 0; i < 20 * kWaiting; ++i) {
      tree->put(i, i);
      if (i >= kWaiting) {
        ASSERT_TRUE(tree->erase(i - kWaiting));
      }
    }
    EXPECT_LE(tree->stats().leaves, 4 * kWaiting / fanout);
    EXPECT_LE(tree->stats().pm_bytes, 8 * kWaiting / fanout * sizeof(Node));
    tree.expect_sound_pool();
  }
}

// What is copied at a time ends before the leaves that were read do.
TEST(FastFairTree, AScanGoesOnWhereLongStringsHaveEndedABatch) {
  constexpr std::uint64_t kKeys = 400;
  Strings tree(kCapacity);
  for (std::uint64_t i = 0; i < kKeys; ++i)
    tree->put(text_of(i), std::string(100 + i % 7 * 500, 'v'));
  std::uint64_t shown = 0;
  tree->scan("", [&](std::string_view, std::string_view) { return ++shown > 0; });
  EXPECT_EQ(shown, kKeys);
}

/// The leaves from the left.
template <class Tree>
std::vector<Node*> leaves_of(Tree& tree) {
  Node* node = &tree.root();
  while (meta_of(*node).level > 0) node = &tree.node_at(node->leftmost);
  std::vector<Node*> leaves = {node};
  while (leaves.back()->next != 0) leaves.push_back(&tree.node_at(leaves.back()->next));
  return leaves;
}

/// Of a shift that a crash interrupts at `at`: the entry is a copy of its right neighbour, with any
/// value.
void interrupt_shift(Node& node, unsigned at) {
  node.entries[at] = {node.entries[at + 1].key, 12345};
}

/// What is done to a leaf of `count` entries, of which the one at `at` is a copy.
void write_behind_an_interrupted_shift(Numbers& tree, unsigned count, unsigned at,
                                       unsigned action) {
  tree.drop();
  std::map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t i = 0; i < count; ++i) tree->put(10 * i, i), model[10 * i] = i;
  ASSERT_EQ(tree.height(), 0u);
  interrupt_shift(tree.root(), at);
  model.erase(10 * at);
  tree.reopen_index();
  expect_same(tree, model);
  tree.expect_sound();
  const std::uint64_t key = 10 * at + 10;  // that of the two
  EXPECT_EQ(tree->get(key), model[key]);
  switch (action) {
    case 0: tree->put(10 * at + 5, 1), model[10 * at + 5] = 1; break;
    case 1: tree->erase(key), model.erase(key); break;
    case 2: tree->update(key, 2), model[key] = 2; break;
    case 3: tree->put(1000, 3), model[1000] = 3; break;
    default: tree->put(1, 4), model[1] = 4; break;
  }
  expect_same(tree, model);
  tree.expect_sound_pool();
}

TEST(FastFairTree, WritesGoOnBehindAnInterruptedShift) {
  Numbers tree(kCapacity);
  for (const unsigned count : {kCapacity, kCapacity - 3}) {
    for (unsigned at = 0; at + 1 < count; ++at) {
      for (unsigned action = 0; action < 5; ++action) {
        write_behind_an_interrupted_shift(tree, count, at, action);
      }
    }
  }
}

TEST(FastFairTree, DropBehindAnInterruptedShiftFreesEachBlockOnce) {
  Strings tree(kLow);
  for (unsigned i = 0; i < 200; ++i) tree->put(text_of(i), "value");
  for (Node* leaf : leaves_of(tree)) {
    if (meta_of(*leaf).count < 2) continue;
    const std::string lost(Codec<std::string>(tree.core()).view(leaf->entries[0].key));
    EXPECT_TRUE(tree->erase(lost));
    tree->put(lost, "value");
  }
  // A copy with the same words, as in the middle of an insert: no block is lost.
  for (Node* leaf : leaves_of(tree)) {
    const unsigned count = meta_of(*leaf).count;
    if (count == 0 || count == kCapacity) continue;
    leaf->entries[count] = leaf->entries[count - 1];
    leaf->meta = meta_with(*leaf, count + 1);
  }
  tree.expect_sound_pool();
  tree.drop();
  tree.expect_sound_pool();
}

/// Takes all entries out of the nodes of a level, as if no split had got its entry.
template <class Tree>
void forget_entries(Tree& tree, Node& node) {
  if (meta_of(node).level > 1) forget_entries(tree, tree.node_at(node.leftmost));
  node.meta = meta_with(node, 0);
}

TEST(FastFairTree, NodesWithoutEntriesAreFoundAndGetThem) {
  Numbers tree(kLow);
  std::map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 400; ++i) tree->put(10 * i, i), model[10 * i] = i;
  const unsigned height = tree.height();
  forget_entries(tree, tree.root());
  tree.reopen();
  tree.expect_sound();
  expect_same(tree, model);
  for (const auto& [key, value] : model) ASSERT_EQ(tree->get(key), value);
  EXPECT_EQ(tree->find_floor(3999)->first, 3990u);
  for (std::uint64_t from = 0; from <= 3980; from += 5) {  // begin left of the leaf of their keys
    std::vector<std::uint64_t> seen;
    tree->scan(from, [&](std::uint64_t key, std::uint64_t) {
      seen.push_back(key);
      return seen.size() < 2;
    });
    const std::uint64_t first = (from + 9) / 10 * 10;
    ASSERT_EQ(seen, (std::vector{first, first + 10})) << from;
  }
  for (unsigned round = 0; round < 3; ++round) {
    for (const auto& [key, value] : model) ASSERT_TRUE(tree->update(key, value));
  }
  const Node& root = tree.root();
  EXPECT_GE(meta_of(root).level, height - 1);
  EXPECT_GT(meta_of(root).count, 0u) << "writes that come by make entries good";
  tree.expect_sound_pool();
  for (const auto& [key, value] : model) ASSERT_TRUE(tree->erase(key));
  EXPECT_LE(tree->stats().leaves, 2u);
  tree.expect_sound_pool();
}

TEST(FastFairTree, ADamagedNodeIsAnErrorAndAProblem) {
  Numbers tree(kLow);
  for (std::uint64_t i = 0; i < 400; ++i) tree->put(i, i);
  Node& root = tree.root();
  const Node sound = root;
  const auto expect_problem = [&](const char* what) {
    EXPECT_FALSE(tree->check().ok()) << what;
    root = sound;
  };
  root.next = tree.core().offset(&root);  // round in a circle
  EXPECT_THROW(tree->get(~std::uint64_t{0}), Error);
  EXPECT_THROW(tree->scan(0, [](auto, auto) { return true; }), Error)
      << "only the leaves are followed by a scan, but the root leads to them";
  expect_problem("circle");
  root.leftmost = tree.core().offset(&root);  // a child of the wrong level
  EXPECT_THROW(tree->get(0), Error);
  expect_problem("level");
  root.entries[0].value = ~std::uint64_t{0};
  expect_problem("outside");
  root.meta = Meta{kCapacity + 1, meta_of(root).level}.pack();
  EXPECT_THROW(tree->get(0), Error);
  expect_problem("count");
  Node& leaf = *leaves_of(tree)[3];
  std::swap(leaf.entries[0], leaf.entries[1]);
  EXPECT_FALSE(tree->check().ok()) << "order";
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
