// The parts of a tree, put together by hand: nodes and the way to them, splits and what follows
// them, merges, ordered reads, and what the checker finds.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "index/fastfair/check.h"
#include "index/fastfair/leaf_store.h"
#include "index/fastfair/node_merge.h"
#include "index/fastfair/recovery.h"
#include "index/fastfair/scan.h"
#include "index/fastfair/search.h"
#include "index/fastfair/smo.h"

namespace perdix::detail::index::fastfair {
namespace {

constexpr unsigned kFanout = 4;

class FastFairParts : public testing::Test {
 protected:
  class EmptyPool : public TestPool<EmptyPool> {};

  /// A word that leads to a first leaf.
  std::uint64_t& made_root() {
    std::uint64_t& root = pool_.core().open_index("t", "fastfair", Kind::u64, Kind::u64).root();
    create_first_leaf(pool_.core(), root);
    return root;
  }

  /// A leaf that holds a key is split, or gets the key.
  Node* put(Number key) {
    const epoch::Guard guard;
    Node& leaf = *descent_.seek({key}, 0).node;
    if (meta_of(leaf).count == kFanout) return splitting_.split(leaf, key, [] { return 0; });
    store_.add(leaf, nodes_.rank(leaf, {key}), key, NewValue(key));
    return nullptr;
  }

  /// Puts keys, without entries above the nodes that splits make.
  void fill(Number keys) {
    for (Number key = 1; key <= keys;) {
      if (put(10 * key) == nullptr) ++key;
    }
  }

  /// Gives all nodes their entries.
  void install_all() {
    const epoch::Guard guard;
    for (Node* leaf = descent_.seek({0}, 0).node; leaf != nullptr; leaf = nodes_.after(*leaf)) {
      if (leaf->low != 0) splitting_.install(*leaf);
    }
  }

  std::vector<Number> keys_from(Number from) const {
    std::vector<Number> keys;
    reader_.scan(from, kNoLimit, [&](const CopiedPairs<Number>& pairs) {
      return pairs.for_each<Number>([&](Number key, Number) { return keys.push_back(key), true; });
    });
    return keys;
  }

  std::vector<std::string> problems() const {
    const epoch::Guard guard;
    CheckReport report;
    TreeChecker<Number>(descent_, buffers_, store_.values(), nullptr, report).check();
    return report.problems;
  }

  unsigned leaves() const {
    unsigned count = 0;
    nodes_.for_each([&](const Node& node) { count += meta_of(node).level == 0; });
    return count;
  }
  unsigned height() const { return meta_of(nodes_.root()).level; }

  EmptyPool pool_;
  Descent<Number> descent_{pool_.core(), made_root(), kFanout, Latches::kBits, kUnlimited};
  const Nodes<Number>& nodes_ = descent_.nodes();
  LeafStore<Number> store_{pool_.core(), Kind::u64};
  Splitting<Number> splitting_{descent_};
  LeafBuffers<Number> buffers_{descent_, splitting_, store_};
  Merging<Number> merging_{descent_, splitting_, buffers_};
  const LeafReader<Number> reader_{descent_, buffers_, store_.values()};
};

TEST_F(FastFairParts, NodesSayWhichEntriesATargetReaches) {
  for (const Number key : {10, 20, 30}) put(key);
  const Node& leaf = nodes_.root();
  const auto expect_rank = [&](Number key, bool strictly_below, unsigned rank) {
    EXPECT_EQ(nodes_.rank(leaf, {key, strictly_below}), rank) << key;
    EXPECT_EQ(nodes_.rank_from_right(leaf, {key, strictly_below}), rank) << key;
  };
  expect_rank(9, false, 0);
  expect_rank(20, false, 2);
  expect_rank(20, true, 1);
  expect_rank(99, false, 3);
  EXPECT_TRUE(nodes_.holds(leaf, 2, 20, Codec<Number>::hash16(20)));
  EXPECT_FALSE(nodes_.holds(leaf, 1, 20, Codec<Number>::hash16(20)));
  EXPECT_FALSE(nodes_.holds(leaf, 0, 20, Codec<Number>::hash16(20)));
}

TEST_F(FastFairParts, ASplitNodeIsFoundFromItsLeft) {
  fill(kFanout + 1);
  EXPECT_EQ(height(), 0U);
  const epoch::Guard guard;
  const Seen found = descent_.seek({10 * (kFanout + 1)}, 0);
  EXPECT_EQ(found.node, nodes_.after(nodes_.root()));
  EXPECT_TRUE(found.valid());
  EXPECT_EQ(descent_.seek({10 * kFanout}, 0).node, &nodes_.root());
  EXPECT_EQ(descent_.seek({0}, 1).node, nullptr) << "there is no inner node";
}

TEST_F(FastFairParts, StraysGetTheirEntriesAndARoot) {
  fill(50);
  EXPECT_EQ(height(), 0U);
  install_all();
  EXPECT_GE(height(), 1U);
  EXPECT_EQ(problems(), std::vector<std::string>());
  const epoch::Guard guard;
  for (Number key = 10; key <= 500; key += 10) {
    Node* stray = nullptr;
    const Node& leaf = *descent_.seek({key}, 0, &stray).node;
    EXPECT_TRUE(nodes_.holds(leaf, nodes_.rank(leaf, {key}), key, 0)) << key;
    EXPECT_EQ(stray, nullptr) << key;
  }
}

TEST_F(FastFairParts, SparseLeavesAreMergedAndRootsOfOneChildGo) {
  fill(50);
  install_all();
  const unsigned before = leaves();
  const epoch::Guard guard;
  for (Number key = 50; key > 0; --key) {
    Node& leaf = *descent_.seek({10 * key}, 0).node;
    store_.remove(leaf, nodes_.rank(leaf, {10 * key}) - 1);
    merging_.after_erase(10 * key, meta_of(leaf).count);
  }
  EXPECT_GT(before, 2U);
  EXPECT_LE(leaves(), 2U);
  EXPECT_LE(height(), 1U);
  EXPECT_EQ(problems(), std::vector<std::string>());
}

TEST_F(FastFairParts, TheCachedPathKnowsTheLeavesOfSplits) {
  descent_.fill_path(std::stop_token());
  EXPECT_TRUE(descent_.path()->complete());
  fill(20);
  const epoch::Guard guard;
  for (const Node* leaf = &nodes_.root(); leaf != nullptr; leaf = nodes_.after(*leaf))
    EXPECT_TRUE(descent_.path()->has(*leaf)) << leaf->low;
  EXPECT_FALSE(descent_.has_one_leaf());
}

TEST_F(FastFairParts, ReadsAreOrderedAndGoOnAcrossLeaves) {
  fill(20);
  std::vector<Number> expected;
  for (Number key = 7; key <= 20; ++key) expected.push_back(10 * key);
  EXPECT_EQ(keys_from(61), expected);
  const epoch::Guard guard;
  LastPairs last(1);
  reader_.find_last(60, true, last);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last.farthest().key, 50U);
  Number seen = 0;
  reader_.for_each_leaf([&](const Node&, const auto& snapshot) { seen += snapshot.size; });
  EXPECT_EQ(seen, 20U);
}

TEST_F(FastFairParts, WithoutBuffersALeafHasWhatItHolds) {
  fill(3);
  EXPECT_EQ(buffers_.get(), nullptr);
  EXPECT_EQ(buffers_.of(nodes_.root()), nullptr);
  EXPECT_EQ(buffers_.pairs_of(nodes_.root()), 3U);
  EXPECT_EQ(buffers_.all_pairs(nodes_.root()).size, 3U);
  EXPECT_TRUE(buffers_.ready(nodes_.held(nodes_.root())));
  EXPECT_FALSE(buffers_.resuming());
}

TEST_F(FastFairParts, TheCheckerNoticesAKeyOutsideItsNode) {
  fill(10);
  install_all();
  EXPECT_EQ(problems(), std::vector<std::string>());
  Node& leaf = *nodes_.after(*descent_.seek({0}, 0).node);
  leaf.entries[0].key = 1;
  EXPECT_FALSE(problems().empty());
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
