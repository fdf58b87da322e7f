// Instant opening: an index that was opened a moment ago, with most of its leaves cold.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
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
  tree.lead_round();
  tree.reopen_cold();
  try {
    tree->get(0);
    FAIL() << "the damage goes unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
  }
}

TEST(NbTreeSignposts, LeadToALeafPastAllOthers) {
  constexpr std::size_t kEnough =
      150;  // one anchor of sixteen, so that rows of that length are rare
  NumberTree tree;
  std::mt19937_64 random(5);
  const NumberMap numbers = fill(tree, 1000 * kCapacity, random);
  const std::size_t leaves = tree.known_positions();
  ASSERT_GT(leaves, 5 * kEnough);
  for (int i = 0; i < 20; ++i) {
    tree.reopen_cold();
    EXPECT_EQ(tree.known_positions(), NumberLayout::kRegions);
    const auto& [key, value] = *numbers.lower_bound(random());
    EXPECT_EQ(tree->get(key), value);
    EXPECT_LT(tree.known_positions(), kEnough);
    EXPECT_EQ(tree->stats().leaves, 1u);
  }
  expect_numbers(tree, numbers);
}

/// Splits and joins leaves, some of them beside cold ones.
NumberMap churn(NumberTree& tree, std::mt19937_64& random) {
  NumberMap numbers = fill(tree, 300 * kCapacity, random);
  for (int round = 0; round < 4; ++round) {
    auto from = numbers.lower_bound(random());
    for (unsigned i = 0; i < 40 * kCapacity && from != numbers.end(); ++i) {
      EXPECT_TRUE(tree->erase(from->first));
      from = numbers.erase(from);
    }
    for (unsigned i = 0; i < 40 * kCapacity; ++i) {
      const std::uint64_t key = random();
      tree->put(key, numbers[key] = i);
    }
    if (round % 2 == 0) tree.reopen_cold();
  }
  return numbers;
}

TEST(NbTreeSignposts, FollowSplitsAndJoins) {
  NumberTree tree;
  std::mt19937_64 random(6);
  NumberMap numbers = churn(tree, random);
  tree->size();  // all positions are known, and no signpost is stale
  EXPECT_GT(tree.signposts().size(), 5u);
  EXPECT_EQ(tree.signposts(), tree.signposts_there_should_be());
  while (numbers.size() > 100 * kCapacity) {
    EXPECT_TRUE(tree->erase(numbers.begin()->first));
    numbers.erase(numbers.begin());
  }
  EXPECT_EQ(tree.signposts(), tree.signposts_there_should_be()) << "after joins";
  tree.reopen_cold();
  EXPECT_EQ(tree.signposts(), tree.signposts_there_should_be()) << "they are in PM";
  expect_numbers(tree, numbers);
}

TEST(NbTreeSignposts, OfStringsLeadToLeaves) {
  StringTree tree;
  std::map<std::string, std::string> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) tree->put(std::to_string(random()), "value");
  tree->scan("", [&](auto key, auto value) { return model.emplace(key, value).second; });
  EXPECT_EQ(tree.signposts(), tree.signposts_there_should_be());
  EXPECT_GT(tree.signposts().size(), 10u);
  for (int i = 0; i < 20; ++i) {
    tree.reopen_cold();
    const auto& [key, value] = *model.lower_bound(std::to_string(random()));
    EXPECT_EQ(tree->get(key), value);
    EXPECT_LT(tree.known_positions(), 150u);
  }
  expect_same(tree, model);
  tree.expect_sound_pool();
}

TEST(NbTreeSignposts, AnIndexWithoutThemGetsThem) {
  NumberTree tree;
  std::mt19937_64 random(8);
  const NumberMap numbers = churn(tree, random);
  tree.forget_signposts();
  tree.reopen_cold();
  EXPECT_EQ(tree->get(numbers.rbegin()->first), numbers.rbegin()->second);
  tree->size();
  EXPECT_EQ(tree.signposts(), tree.signposts_there_should_be());
  expect_numbers(tree, numbers);
}

/// A place of an anchor that is free.
pm::Offset free_place(NumberTree& tree) {
  for (const Stripe& stripe : tree.root().stripes) {
    for (pm::Offset at = stripe.anchors; at != pm::kNull;) {
      AnchorPage& page = *tree.core().at<AnchorPage>(at);
      for (Anchor& anchor : page.anchors) {
        if (anchor.block == pm::kNull) return tree.core().offset(&anchor);
      }
      at = page.next;
    }
  }
  return pm::kNull;
}

TEST(NbTreeSignposts, AreNotBelievedWhereTheyAreStale) {
  NumberTree tree;
  std::mt19937_64 random(9);
  const NumberMap numbers = churn(tree, random);
  tree->size();
  const auto there = tree.signposts();
  ASSERT_GT(there.size(), 5u);
  const pm::Offset none = free_place(tree), other = there.rbegin()->second;
  ASSERT_NE(none, pm::kNull);
  const std::vector<std::function<void(fastfair::Tree<std::uint64_t, std::uint64_t>&)>> changes{
      [&](auto& signs) {  // to the leaf of another bound
        for (const auto& [low, anchor] : there) signs.put(low, other);
      },
      [&](auto& signs) {  // to a place that is free
        for (const auto& [low, anchor] : there) signs.put(low, none);
      },
      [&](auto& signs) {  // to what is no place
        for (const auto& [low, anchor] : there) signs.put(low, anchor + 8);
      },
      [&](auto& signs) {  // with a bound that no leaf has
        for (const auto& [low, anchor] : there) signs.put(low + 1, anchor);
      }};
  for (const auto& change : changes) {
    tree.change_signposts(change);
    tree.reopen_cold();
    for (const auto& [low, anchor] : there) {
      const auto found = numbers.lower_bound(low);
      if (found != numbers.end()) {
        ASSERT_EQ(tree->get(found->first), found->second);
      }
    }
    expect_numbers(tree, numbers);
    tree->size();
    EXPECT_EQ(tree.signposts(), tree.signposts_there_should_be()) << "what is stale is gone";
  }
}

/// As a crash leaves a join whose block is linked, and one that it has not reached: the anchor that
/// is named is the one that goes.
TEST(NbTreeSignposts, AreNotBelievedWhereTheLedgerNamesTheAnchor) {
  NumberTree tree;
  std::mt19937_64 random(10);
  const NumberMap numbers = churn(tree, random);
  tree->size();
  const auto there = tree.signposts();
  ASSERT_GT(there.size(), 5u);
  // The list loses the anchor, with its pairs, which only a join keeps.
  const auto [low, gone] = *std::next(there.begin(), 2);
  tree.change_signposts([&, lost = gone](auto&) {
    const auto block_at = [&](pm::Offset anchor) -> Block& {
      return *tree.core().at<Block>(tree.core().at<Anchor>(anchor)->block);
    };
    pm::Offset before = tree.root().first;
    while (block_at(before).next != lost) before = block_at(before).next;
    block_at(before).next = block_at(lost).next;
    tree.root().stripes[kOperationStripes].retired = {lost | kAnchorTag,
                                                      tree.core().offset(&block_at(lost))};
  });
  tree.reopen_cold();
  NumberMap left = numbers;
  for (auto at = left.lower_bound(low); at != left.end(); at = left.erase(at)) {
    if (tree->get(at->first)) break;
  }
  EXPECT_LT(left.size(), numbers.size());
  expect_numbers(tree, left);
}

TEST(NbTreeResume, GivesNoPlaceOfAnAnchorTwice) {
  NumberTree tree;
  std::mt19937_64 random(11);
  NumberMap numbers = churn(tree, random);
  for (int round = 0; round < 10; ++round) {
    tree.reopen_cold();
    // Joins make places free, and splits take some, before all are known.
    auto from = numbers.lower_bound(random());
    for (unsigned i = 0; i < 20 * kCapacity && from != numbers.end(); ++i) {
      EXPECT_TRUE(tree->erase(from->first));
      from = numbers.erase(from);
    }
    tree.core().reclaimer().drain();
    for (unsigned i = 0; i < 30 * kCapacity; ++i) {
      const std::uint64_t key = random();
      tree->put(key, numbers[key] = i);
      if (i == 10 * kCapacity) tree->size();
    }
    expect_numbers(tree, numbers);
  }
}

std::size_t pages_of_anchors(NumberTree& tree) {
  std::size_t count = 0;
  for (const Stripe& stripe : tree.root().stripes) {
    for (pm::Offset at = stripe.anchors; at != pm::kNull; ++count)
      at = tree.core().at<AnchorPage>(at)->next;
  }
  return count;
}

TEST(NbTreeResume, TakesFreePlacesOfAnchorsAgain) {
  NumberTree tree;
  std::mt19937_64 random(12);
  const NumberMap numbers = fill(tree, 700 * kCapacity, random);
  const std::size_t pages = pages_of_anchors(tree);
  EXPECT_GT(pages, 5u);
  for (const auto& [key, value] : numbers) EXPECT_TRUE(tree->erase(key));
  tree.reopen();
  tree->size();  // all places are known
  fill(tree, 600 * kCapacity, random);
  EXPECT_LE(pages_of_anchors(tree), pages + 2) << "in each stripe that was used one may be begun";
}

}  // namespace
}  // namespace perdix::detail::index::nbtree
