// Instant opening: an index that was opened a moment ago, with most of its leaves cold.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/nbtree/test_tree.h"

namespace perdix::detail::index::nbtree {
namespace {

using NumberMap = std::map<std::uint64_t, std::uint64_t>;
using NumberTree = TestTree<std::uint64_t, std::uint64_t>;
using StringTree = TestTree<std::string, std::string>;
using NumberLayout = EntryLayout<std::uint64_t>;

NumberMap fill(NumberTree& tree, std::uint64_t keys, std::mt19937_64& random) {
  NumberMap numbers;
  while (numbers.size() < keys) numbers[random()] = random();
  for (const auto& [key, value] : numbers) tree->put(key, value);
  return numbers;
}

/// Puts 500 strings into a tree; returns the bytes that it has then, with nothing left to be freed.
std::uint64_t fill(StringTree& tree) {
  for (int i = 0; i < 500; ++i) tree->put(std::to_string(i), std::string(50, 'v'));
  tree.reopen();
  EXPECT_EQ(tree->size(), 500u);
  return tree.allocated();
}

void expect_numbers(NumberTree& tree, const NumberMap& numbers) {
  NumberMap found;
  tree->scan(0, [&](auto key, auto value) { return found.emplace(key, value).second; });
  EXPECT_EQ(found, numbers);
  EXPECT_EQ(tree->size(), numbers.size());
  tree.expect_sound_pool();
}

TEST(NbTreeResume, BringsBackOnlyUsedLeaves) {
  NumberTree tree;
  std::mt19937_64 random(1);
  const NumberMap numbers = fill(tree, 100 * kCapacity, random);
  const std::uint64_t leaves = tree->stats().leaves;
  tree.reopen_cold();
  EXPECT_EQ(tree->stats().leaves, 0u);
  EXPECT_EQ(tree->stats().resumed, 0);
  const auto& [key, value] = *std::next(numbers.begin(), 40 * kCapacity);
  EXPECT_EQ(tree->get(key), value);
  EXPECT_EQ(tree->get(key + 1), std::nullopt);
  EXPECT_EQ(tree->stats().leaves, 1u);
  EXPECT_EQ(tree->stats().resumption_seconds, 0);
  EXPECT_EQ(tree->size(), numbers.size());
  EXPECT_EQ(tree->stats().resumed, 1);
  EXPECT_EQ(tree->stats().leaves, leaves);
  EXPECT_GT(tree->stats().resumption_seconds, 0);
  expect_numbers(tree, numbers);
}

TEST(NbTreeResume, AnyOrderOfLookupsFindsEverything) {
  NumberTree tree;
  std::mt19937_64 random(2);
  const NumberMap numbers = fill(tree, 50 * kCapacity, random);
  tree.reopen_cold();
  std::vector<std::uint64_t> keys;
  for (const auto& [key, value] : numbers) keys.push_back(key);
  std::shuffle(keys.begin(), keys.end(), random);
  std::vector<std::optional<std::uint64_t>> values(keys.size());
  tree->get_many(keys, values);
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(values[i], numbers.at(keys[i]));
  expect_numbers(tree, numbers);
}

TEST(NbTreeResume, LeavesAreSplitAndJoinedBesideColdOnes) {
  NumberTree tree;
  std::mt19937_64 random(3);
  NumberMap numbers = fill(tree, 60 * kCapacity, random);
  for (int round = 0; round < 6; ++round) {
    tree.reopen_cold();
    for (int place = 0; place < 8; ++place) {
      auto from = numbers.lower_bound(random());
      for (unsigned i = 0; i < 3 * kCapacity && from != numbers.end(); ++i) {
        if (place % 2 == 0) {
          EXPECT_TRUE(tree->erase(from->first));
          from = numbers.erase(from);
        } else {
          const std::uint64_t key = from->first + 1 + random() % 1000;
          tree->put(key, i);
          numbers[key] = i;
          ++from;
        }
      }
    }
  }
  expect_numbers(tree, numbers);
}

/// What a crash has left in the first leaf: of key 7 an entry and two that lost, of key 1 a frozen
/// one.
void leave_in_flight(NumberTree& tree) {
  tree->size();  // no thread reads the block in the background
  Entry* entries = tree.first_block().entries;
  for (unsigned i = 3; i < 6; ++i) {
    entries[i].value = 100 + i;
    entries[i].key = NumberLayout::pack(7, i == 4 ? State::frozen : State::pending);
  }
  entries[0].key = NumberLayout::pack(1, State::frozen);
}

TEST(NbTreeResume, SeveralThreadsNeedOneColdLeaf) {
  constexpr unsigned kRounds = 60;
  NumberTree tree;
  for (unsigned round = 0; round < kRounds; ++round) {
    for (std::uint64_t key = 1; key <= 3; ++key) tree->put(key, 10 * key);
    leave_in_flight(tree);
    tree.reopen_cold();
    std::atomic<unsigned> erased{0}, inserted{0};
    {
      std::vector<std::jthread> threads;
      threads.emplace_back([&] { EXPECT_EQ(tree->get(2), 20u); });
      threads.emplace_back([&] { erased += tree->erase(7); });
      threads.emplace_back([&] { EXPECT_TRUE(tree->update(1, 11)); });
      threads.emplace_back([&] { inserted += tree->insert(8, 80); });
    }
    EXPECT_EQ(erased, 1u);
    EXPECT_EQ(inserted, 1u);
    tree.reopen_cold();
    ASSERT_EQ(tree->get(7), std::nullopt) << "those that lost must not come back";
    expect_numbers(tree, NumberMap{{1, 11}, {2, 20}, {3, 30}, {8, 80}});
    tree.drop();
  }
}

TEST(NbTreeResume, StringsOfInterruptedOperationsAreFreedWhenAllIsKnown) {
  StringTree tree;
  const std::uint64_t before = fill(tree);
  tree.claim_and_forget(100, kOperationStripes / 2);
  tree.reopen_cold();
  const std::uint64_t claimed = tree.allocated();
  EXPECT_GT(claimed, before);
  EXPECT_EQ(tree->get("7"), std::string(50, 'v'));
  EXPECT_TRUE(tree->update("7", "short")) << "other stripes are free";
  EXPECT_EQ(tree->stats().leaves, 1u);
  EXPECT_EQ(tree->size(), 500u);
  EXPECT_LE(tree.allocated(), claimed - kOperationStripes * 100);
  EXPECT_EQ(tree->get("7"), "short");
  tree.expect_sound_pool();
}

TEST(NbTreeResume, OpeningReadsAllIfTooManyOperationsWereInterrupted) {
  StringTree tree;
  const std::uint64_t before = fill(tree);
  tree.claim_and_forget(100, kOperationStripes);
  tree.reopen_cold();
  EXPECT_EQ(tree->stats().resumed, 1);
  EXPECT_EQ(tree.allocated(), before);
  EXPECT_TRUE(tree->update("7", "short")) << "no stripe is occupied";
  tree.expect_sound_pool();
}

TEST(NbTreeResume, AFullPoolGetsBlocksOfInterruptedOperations) {
  StringTree tree;
  fill(tree);
  tree.claim_and_forget(2000, kOperationStripes / 2);
  tree.reopen_cold();
  const std::uint64_t claimed = tree.allocated();
  EXPECT_TRUE(tree.core().reclaim_space());
  // Blocks and words for joins are put aside from the first time on that the pool is full.
  EXPECT_LE(tree.allocated(), claimed - kOperationStripes * 2000 + 8 * 1024);
  tree.expect_sound_pool();
}

TEST(NbTreeResume, APoolIsSoundWhoseIndexPutsBlocksAsideWhenItIsOpened) {
  StringTree tree;
  fill(tree);
  // As a crash leaves it in a modification: the next opening makes sure of a block.
  tree.root().stripes[kOperationStripes].claims = {kNoBlock};
  tree.expect_sound_pool();  // it is opened by the check only
}

TEST(NbTreeResume, ReusesAStripeWhenAllItsClaimsWereReached) {
  // As a crash leaves it that comes when all names have been taken away and nothing is settled.
  StringTree tree;
  fill(tree);
  tree.root().stripes[0].claims = {kNoBlock};
  tree.reopen_cold();
  EXPECT_EQ(tree->size(), 500u);
  tree.expect_sound_pool();
  EXPECT_EQ(tree.root().stripes[0].claims[0], pm::kNull);
}

TEST(NbTreeResume, ADamagedSuccessorIsFoundWhenTheLeafIsNeeded) {
  NumberTree tree;
  std::mt19937_64 random(4);
  fill(tree, 20 * kCapacity, random);
  tree.first_block().next += sizeof(Anchor);
  tree.reopen_cold();
  try {
    tree->get(0);
    FAIL() << "the damage goes unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
  }
}

}  // namespace
}  // namespace perdix::detail::index::nbtree
