// The levels above level 0: how high nodes are, how they come into their levels and leave them, and
// what a crash may have left of that.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "index/skiplist/test_list.h"
#include "util/random.h"
#include "util/test_hash.h"

namespace perdix::detail::index::skiplist {
namespace {

using Number = std::uint64_t;

TEST(SkipListTowers, HeightsFollowTheHash) {
  EXPECT_EQ(height_of_hash(~std::uint64_t{0}), 1u);
  EXPECT_EQ(height_of_hash(std::uint64_t{1} << 62), 1u);
  EXPECT_EQ(height_of_hash(std::uint64_t{1} << 61), 2u);
  EXPECT_EQ(height_of_hash(std::uint64_t{1} << 59), 3u);
  EXPECT_EQ(height_of_hash(0), kMaxHeight);
}

TEST(SkipListTowers, OneInFourIsHigher) {
  std::array<unsigned, kMaxHeight + 2> at_least{};
  constexpr Number kKeys = 1 << 20;
  const util::SeededHash hash(kTestSeed);
  for (Number key = 0; key < kKeys; ++key) {
    for (unsigned height = height_of_hash(hash(key)); height > 0; --height) ++at_least[height];
  }
  for (unsigned height = 1; at_least[height] > 4000; ++height)
    EXPECT_NEAR(static_cast<double>(at_least[height + 1]) / at_least[height], 0.25, 0.02) << height;
}

/// Keys whose hashes without a seed begin with ones: all their nodes would be of one level.
TEST(SkipListTowers, ComputedKeysDoNotMakeAListWithoutTowers) {
  constexpr Number kKeys = 8192;
  Numbers list;
  for (Number i = 0; i < kKeys; ++i) {
    const Number key = util::number_of_hash(~i);
    ASSERT_EQ(height_of_hash(util::hash(key)), 1u);
    list->put(key, i);
  }
  Number at_least = kKeys;
  for (unsigned level = 0; level < 5; ++level, at_least = at_least / 4 * 3 / 4)
    EXPECT_GE(list.nodes(level).size(), at_least) << level;
}

/// A list of few keys is not higher than it needs to be.
TEST(SkipListTowers, LevelsBeginOneByOne) {
  Numbers list;
  const std::vector<Number> keys = keys_of_height(6, 8);
  for (unsigned i = 0; i < keys.size(); ++i) {
    list->put(keys[i], i);
    EXPECT_EQ(height_of(list.node_of(keys[i])), std::min(i + 1, 6U));
    EXPECT_EQ(levels_in_use(list.head()), std::min(i + 1, 6U));
  }
  list.expect_sound_pool();
}

TEST(SkipListTowers, ANodeIsInAllOfItsLevels) {
  Numbers list;
  util::Random random(1);
  for (unsigned i = 0; i < 5000; ++i) list->put(random.below(100000), i);
  for (unsigned level = 0; level < levels_in_use(list.head()); ++level) {
    std::vector<Node*> high;
    for (Node* node : list.nodes()) {
      if (height_of(*node) > level) high.push_back(node);
    }
    EXPECT_EQ(list.nodes(level), high) << "level " << level;
  }
}

TEST(SkipListTowers, AnErasedNodeIsInNoLevel) {
  Numbers list;
  for (unsigned height = 1; height <= 6; ++height) {
    for (const Number key : keys_of_height(height, 10)) list->put(key, height);
  }
  for (const Number key : keys_of_height(6, 10)) {
    const Node* node = &list.node_of(key);
    EXPECT_TRUE(list->erase(key));
    for (unsigned level = 0; level < 6; ++level) {
      const std::vector<Node*> left = list.nodes(level);
      ASSERT_EQ(std::find(left.begin(), left.end(), node), left.end()) << "level " << level;
    }
    list.expect_sound();
  }
  list.expect_sound_pool();
}

TEST(SkipListTowers, ReopeningFindsTheLevels) {
  Numbers list;
  for (const Number key : keys_of_height(7, 20)) list->put(key, 1);
  list.reopen();
  list.expect_sound();
  for (const Number key : keys_of_height(7, 20)) EXPECT_EQ(list->get(key), 1u);
  for (const Number key : keys_of_height(7, 20)) EXPECT_TRUE(list->erase(key));
  list.expect_sound_pool();
  EXPECT_EQ(levels_in_use(list.head()), 0u);
}

/// What a crash may leave: a node that is in level 0, and not in all of the others.
class SkipListCutTowers : public ::testing::TestWithParam<unsigned> {
 protected:
  SkipListCutTowers() {
    for (unsigned height = 1; height <= 5; ++height) {
      for (const Number key : keys_of_height(height, 12)) {
        list_->put(key, key);
        model_[key] = key;
      }
    }
    for (const Number key : keys_of_height(5, 12)) {
      if (height_of(list_.node_of(key)) == 5) tall_.push_back(key);
    }
  }

  /// One of two tall nodes is in only this many levels.
  void cut() {
    for (std::size_t i = 0; i < tall_.size(); i += 2) list_.leave_levels(tall_[i], GetParam());
    list_.reopen_index();
  }

  Numbers list_;
  std::map<Number, Number> model_;
  std::vector<Number> tall_;
};

TEST_P(SkipListCutTowers, AreSound) {
  cut();
  list_.expect_sound_pool();
  expect_same(list_, model_);
  for (const auto& [key, value] : model_) EXPECT_EQ(list_->get(key), value);
}

/// The links of those that were cut lead to the others, which are gone when their turn comes.
TEST_P(SkipListCutTowers, CanBeErased) {
  cut();
  for (const std::size_t first : {1U, 0U}) {
    for (std::size_t i = first; i < tall_.size(); i += 2) {
      EXPECT_TRUE(list_->erase(tall_[i]));
      list_.expect_sound();
      model_.erase(tall_[i]);
    }
  }
  expect_same(list_, model_);
  list_.expect_sound_pool();
}

TEST_P(SkipListCutTowers, NeighboursComeAndGo) {
  cut();
  for (const Number key : keys_of_height(5, 40, 1000)) {
    list_->put(key, 1);
    model_[key] = 1;
    list_.expect_sound();
  }
  for (const Number key : keys_of_height(5, 40, 1000)) {
    EXPECT_TRUE(list_->erase(key));
    model_.erase(key);
    list_.expect_sound();
  }
  expect_same(list_, model_);
  list_.expect_sound_pool();
}

INSTANTIATE_TEST_SUITE_P(Levels, SkipListCutTowers, ::testing::Values(1U, 2U, 3U, 4U));

/// The only nodes of the highest level were on their way into it.
TEST(SkipListTowers, ANodeIsHigherThanAllLevels) {
  Numbers list;
  const std::vector<Number> keys = keys_of_height(6, 8);
  for (const Number key : keys) list->put(key, key);
  for (const Number key : keys) list.leave_levels(key, 2);
  list.reopen_index();
  EXPECT_EQ(levels_in_use(list.head()), 2u);
  list.expect_sound();
  const std::vector<Number> others = keys_of_height(6, 8, keys.back() + 1);
  for (const Number key : others) list->put(key, key);
  list.expect_sound();
  for (const Number key : keys) EXPECT_TRUE(list->erase(key));
  list.expect_sound_pool();
  for (const Number key : others) EXPECT_EQ(list->get(key), key);
}

TEST(SkipListTowers, CheckFindsANodeThatIsNotInTheLevelBelow) {
  Numbers list;
  const std::vector<Number> keys = keys_of_height(4, 10);
  for (const Number key : keys) list->put(key, key);
  Node& node = list.node_of(keys[7]);
  link_word(list.before(keys[7], 1), 1) = link_word(node, 1);
  list.expect_problem("is in level 2 and not in the one below (L3)");
}

TEST(SkipListTowers, CheckFindsALevelOutOfOrder) {
  Numbers list;
  const std::vector<Number> keys = keys_of_height(3, 10);
  for (const Number key : keys) list->put(key, key);
  link_word(list.node_of(keys[8]), 2) = Link{list.core().offset(&list.node_of(keys[3]))}.pack();
  EXPECT_FALSE(list->check().ok());
}

TEST(SkipListTowers, ALinkLeadsToATooLowNode) {
  Numbers list;
  const std::vector<Number> tall = keys_of_height(3, 5);
  for (const Number key : tall) list->put(key, key);
  const Number low = keys_of_height(1, 1, tall.back() + 1)[0];
  list->put(low, low);
  link_word(list.node_of(tall.back()), 2) = Link{list.core().offset(&list.node_of(low))}.pack();
  EXPECT_THROW((void)list->get(low + 1), Error);
}

}  // namespace
}  // namespace perdix::detail::index::skiplist
