// What hints say of nodes, and what becomes of them when nodes move and the table grows.
#include "index/sptree/hints.h"

#include <limits>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/common/test_pool.h"
#include "index/sptree/test_tree.h"

namespace perdix::detail::index::sptree {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

class HintsTest : public testing::Test {
 protected:
  /// Nodes 1 to `count` share the keys [first, last] evenly, and are noted.
  void note_all(std::uint64_t count, std::uint64_t first, std::uint64_t last) {
    const epoch::Guard guard;
    const std::uint64_t width = (last - first) / count;
    for (std::uint64_t i = 0; i < count; ++i) {
      hints_.note(first + i * width, first + (i + 1) * width - 1, static_cast<Hints::Ref>(i + 1));
    }
  }

  /// The share of right hints for keys all over the range of note_all().
  double right(std::uint64_t count, std::uint64_t first, std::uint64_t last) const {
    constexpr std::uint64_t kTried = 100'000;
    const epoch::Guard guard;
    const std::uint64_t width = (last - first) / count, step = width * count / kTried;
    std::uint64_t right = 0;
    for (std::uint64_t i = 0; i < kTried; ++i) {
      const std::uint64_t key = first + i * step;
      right += hints_.of(key) == (key - first) / width + 1 ? 1 : 0;
    }
    return static_cast<double>(right) / kTried;
  }

  epoch::Reclaimer reclaimer_{false};
  util::Arena arena_;
  Hints hints_{arena_, reclaimer_};
};

TEST_F(HintsTest, ThereAreNoneBeforeTheFirstTable) {
  note_all(100, 0, kLargest);
  EXPECT_EQ(hints_.of(0), 0u);
}

TEST_F(HintsTest, AreNotWorthATableForFewNodes) {
  EXPECT_FALSE(hints_.growth_due(4096));
  EXPECT_FALSE(hints_.grow(4096, 0, kLargest));
  EXPECT_EQ(arena_.bytes_in_use(), 0u);
  EXPECT_TRUE(hints_.growth_due(4097));
  EXPECT_TRUE(hints_.grow(4097, 0, kLargest)) << "the nodes have to be noted";
  EXPECT_GT(arena_.bytes_in_use(), 0u);
}

TEST_F(HintsTest, ThereIsACellForEachNode) {
  for (std::uint64_t nodes = 5000; nodes < 500'000; nodes += nodes / 2) {
    hints_.grow(nodes, 0, kLargest);
    EXPECT_FALSE(hints_.growth_due(nodes));
    EXPECT_TRUE(hints_.growth_due(2 * nodes));
  }
}

TEST_F(HintsTest, AreMostlyRightWhereNodesAreAlike) {
  std::uint64_t nodes = 5000;
  for (const auto& [first, last] : {std::pair<std::uint64_t, std::uint64_t>{0, kLargest},
                                    {kLargest / 3, kLargest / 3 + 10'000'000},
                                    {kLargest - (1u << 30), kLargest}}) {
    hints_.grow(nodes *= 2, first, last);
    note_all(nodes, first, last);
    EXPECT_GT(right(nodes, first, last), 0.65) << "from " << first;
  }
}

TEST_F(HintsTest, KeysOutsideOfTheRangeHaveNone) {
  constexpr std::uint64_t kFirst = 1'000'000'000, kLast = 2'000'000'000;
  hints_.grow(5000, kFirst, kLast);
  note_all(5000, kFirst, kLast);
  const epoch::Guard guard;
  for (const std::uint64_t key : {std::uint64_t{0}, kFirst - 1, 2 * kLast, kLargest})
    EXPECT_EQ(hints_.of(key), 0u) << key;
}

TEST_F(HintsTest, TheFirstNodeMayBeginBeforeTheRangeAndTheLastEndBehindIt) {
  constexpr std::uint64_t kFirst = 1'000'000'000, kLast = 2'000'000'000;
  hints_.grow(5000, kFirst, kLast);
  const epoch::Guard guard;
  hints_.note(0, kFirst + 1'000'000, 7);
  hints_.note(kLast - 1'000'000, kLargest, 8);
  hints_.note(0, kFirst - 1, 9);
  EXPECT_EQ(hints_.of(kFirst), 7u);
  EXPECT_EQ(hints_.of(kLast), 8u);
}

TEST_F(HintsTest, ANodeThatTookOverKeysIsTheHintForThem) {
  hints_.grow(5000, 0, kLargest);
  note_all(5000, 0, kLargest);
  const epoch::Guard guard;
  const std::uint64_t width = kLargest / 5000;
  hints_.note(1000 * width, 1003 * width - 1, 6000);  // three in one
  EXPECT_EQ(hints_.of(1001 * width + width / 2), 6000u);
  EXPECT_EQ(hints_.of(999 * width + width / 2), 1000u);
  EXPECT_EQ(hints_.of(1003 * width + width / 2), 1004u);
}

TEST_F(HintsTest, GrowthKeepsThem) {
  hints_.grow(5000, 0, kLargest);
  note_all(5000, 0, kLargest);
  const double before = right(5000, 0, kLargest);
  EXPECT_FALSE(hints_.grow(20'000, 0, kLargest)) << "nothing has to be noted";
  EXPECT_GT(right(5000, 0, kLargest), before - 0.01);
  const std::size_t bytes = arena_.bytes_in_use();
  hints_.grow(20'000, 0, kLargest);
  EXPECT_EQ(arena_.bytes_in_use(), bytes) << "it has room";
}

TEST_F(HintsTest, NodesThatShareACellWithManyOthersHaveNone) {
  hints_.grow(5000, 0, kLargest);
  const epoch::Guard guard;
  hints_.note(0, kLargest / 2, 1);
  EXPECT_EQ(hints_.of(150), 1u);
  hints_.note(100, 200, 2);
  EXPECT_EQ(hints_.of(150), 0u);
}

TEST_F(HintsTest, ANodeWithMostOfACellIsTheHintThere) {
  hints_.grow(5000, 0, kLargest);
  const std::uint64_t cell = (kLargest >> 13) + 1;
  const epoch::Guard guard;
  hints_.note(10 * cell + cell / 5, 11 * cell - cell / 5, 1);  // three fifths
  EXPECT_EQ(hints_.of(10 * cell), 1u);
  hints_.note(10 * cell, 10 * cell + cell / 3, 2);  // a third
  EXPECT_EQ(hints_.of(10 * cell), 1u);
}

TEST_F(HintsTest, ATableThatWasTooSmallIsGivenBack) {
  hints_.grow(5000, 0, kLargest);
  const std::size_t small = arena_.bytes_in_use();
  hints_.grow(10'000, 0, kLargest);
  const std::size_t both = arena_.bytes_in_use();
  EXPECT_GT(both, 2 * small);
  reclaimer_.drain();
  EXPECT_EQ(arena_.bytes_in_use(), both - small);
}

/// A tree in a new pool.
class HintedTree : public TestPool<HintedTree> {
 public:
  using Tree = sptree::Tree<std::uint64_t, std::uint64_t>;

  explicit HintedTree(std::uint64_t budget) : budget_(budget) { open(); }

  void open() {
    SpTreeOptions options;
    options.dram_budget = budget_;
    tree_.emplace(core().open_index("t", kEngineName, Kind::u64, Kind::u64), options);
  }
  void close() { tree_.reset(); }
  void reopen() {
    reopen_pool();
    open();
  }

  Tree& operator*() { return *tree_; }
  Tree* operator->() { return &*tree_; }

  /// The share of random keys whose node a hint leads to.
  double hinted() const {
    constexpr unsigned kTried = 20'000;
    std::mt19937_64 random(2);
    unsigned hinted = 0;
    for (unsigned i = 0; i < kTried; ++i) hinted += tree_->hinted(random()) ? 1 : 0;
    return static_cast<double>(hinted) / kTried;
  }

 private:
  std::uint64_t budget_;
  std::optional<Tree> tree_;
};

/// Enough that there are hints.
void fill(HintedTree::Tree& tree) {
  constexpr std::uint64_t kKeys = 700'000;
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < kKeys; ++i) tree.put(random(), i);
}

TEST(HintedTree, HasHintsThatAreMostlyRightWhereThereAreBuffers) {
  HintedTree tree(kUnlimited);
  EXPECT_EQ(tree.hinted(), 0);
  fill(*tree);
  EXPECT_GT(tree.hinted(), 0.6);
  tree.reopen();
  EXPECT_EQ(tree->size(), 700'000u);  // once all leaves are warm
  EXPECT_GT(tree.hinted(), 0.6);
}

TEST(HintedTree, HasNoneWhereThereAreNoBuffers) {
  HintedTree tree(0);
  fill(*tree);
  EXPECT_EQ(tree.hinted(), 0);
}

TEST(HintedTree, KeysInClustersAreFoundWithoutHints) {
  HintedTree tree(kUnlimited);
  constexpr std::uint64_t kClusters = 8, kKeys = 700'000;
  const auto key_of = [](std::uint64_t i) { return (i % kClusters << 61) + i / kClusters * 3; };
  for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(key_of(i), i);
  for (std::uint64_t i = 0; i < kKeys; i += 97) EXPECT_EQ(tree->get(key_of(i)), i);
  EXPECT_EQ(tree->size(), kKeys);
  tree.expect_sound();
}

}  // namespace
}  // namespace perdix::detail::index::sptree
