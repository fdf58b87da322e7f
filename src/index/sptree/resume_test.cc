// Instant resumption: an index that was opened a moment ago, with most of its leaves cold.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "index/sptree/test_backup.h"
#include "pool/pool_core.h"
#include "util/test_directory.h"

namespace perdix {
namespace {

using BackupOf = detail::index::sptree::BackupOf<std::uint64_t>;
using detail::index::sptree::kLeafPairs;
using Numbers = std::map<std::uint64_t, std::uint64_t>;

SpTreeOptions options_with(std::uint64_t dram_budget, bool in_background = false) {
  SpTreeOptions options;
  options.dram_budget = dram_budget;
  options.resume_in_background = in_background;
  return options;
}

/// With and without write buffers.
class ResumeTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  using Tree = SpTree<std::uint64_t, std::uint64_t>;

  ResumeTest() : pool_(Pool::create(path_)) {}

  /// A tree of this many random pairs, and what is in it.
  Numbers fill(std::uint64_t keys) {
    Numbers numbers;
    Tree tree(pool_, "t", options_with(GetParam()));
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::uint64_t key = random_();
      tree.put(key, i);
      numbers[key] = i;
    }
    return numbers;
  }

  /// A tree that was just opened, cold but for its first leaf.
  Tree reopened(bool in_background = false) {
    pool_.close();
    pool_ = Pool::open(path_);
    return Tree(pool_, "t", options_with(GetParam(), in_background));
  }

  static std::vector<std::uint64_t> keys_of(const Numbers& numbers) {
    std::vector<std::uint64_t> keys;
    for (const auto& [key, value] : numbers) keys.push_back(key);
    return keys;
  }

  static void expect_same(const Tree& tree, const Numbers& numbers) {
    EXPECT_EQ(tree.size(), numbers.size());
    Numbers found;
    tree.scan(0, [&](std::uint64_t key, std::uint64_t value) {
      return found.emplace(key, value).second;
    });
    EXPECT_EQ(found, numbers);
    for (const std::string& problem : tree.check().problems) ADD_FAILURE() << problem;
  }

  testing_files::TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("test.pool");
  Pool pool_;
  std::mt19937_64 random_{7};
};

TEST_P(ResumeTest, BringsBackOnlyUsedLeaves) {
  const Numbers numbers = fill(100 * kLeafPairs);
  const Tree tree = reopened();
  EXPECT_EQ(tree.stats().leaves, 1u);
  EXPECT_LT(tree.stats().resumed, 0.1);
  EXPECT_EQ(tree.stats().resumption_seconds, 0);
  const auto& [key, value] = *std::next(numbers.begin(), 40 * kLeafPairs);
  EXPECT_EQ(tree.get(key), value);
  EXPECT_EQ(tree.get(key + 1), std::nullopt);
  EXPECT_LE(tree.stats().leaves, 3u);
  EXPECT_EQ(tree.size(), numbers.size());
  EXPECT_EQ(tree.stats().resumed, 1);
  EXPECT_GT(tree.stats().resumption_seconds, 0);
  expect_same(tree, numbers);
}

TEST_P(ResumeTest, AnyOrderOfLookupsFindsEverything) {
  const Numbers numbers = fill(50 * kLeafPairs);
  const Tree tree = reopened();
  std::vector<std::uint64_t> keys = keys_of(numbers);
  std::shuffle(keys.begin(), keys.end(), random_);
  for (const std::uint64_t key : keys) ASSERT_EQ(tree.get(key), numbers.at(key)) << key;
  expect_same(tree, numbers);
}

TEST_P(ResumeTest, WritesGoOnBesideColdLeaves) {
  Numbers numbers = fill(50 * kLeafPairs);
  for (int round = 0; round < 5; ++round) {
    Tree tree = reopened();
    // Here and there splits, merges and emptied leaves, their neighbours being cold.
    for (int place = 0; place < 8; ++place) {
      auto from = numbers.lower_bound(random_());
      for (unsigned i = 0; i < 2 * kLeafPairs && from != numbers.end(); ++i) {
        if (place % 2 == 0) {
          EXPECT_TRUE(tree.erase(from->first));
          from = numbers.erase(from);
        } else {
          const std::uint64_t key = from->first + 1 + random_() % 1000;
          tree.put(key, i);
          numbers[key] = i;
        }
      }
    }
    if (round % 2 == 0) expect_same(tree, numbers);  // else the next round goes on from there
  }
  expect_same(reopened(), numbers);
}

TEST_P(ResumeTest, ScansBeginAnywhere) {
  const Numbers numbers = fill(30 * kLeafPairs);
  const Tree tree = reopened();
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t from = random_();
    const auto found = tree.scan(from, 100);
    auto expected = numbers.lower_bound(from);
    for (const auto& [key, value] : found) {
      ASSERT_NE(expected, numbers.end());
      EXPECT_EQ(key, expected->first);
      EXPECT_EQ(value, expected->second);
      ++expected;
    }
  }
  expect_same(tree, numbers);
}

TEST_P(ResumeTest, ThreadsAndTheBackgroundShareTheWork) {
  Numbers numbers = fill(200 * kLeafPairs);
  const std::vector<std::uint64_t> keys = keys_of(numbers);
  Tree tree = reopened(true);
  std::atomic<unsigned> wrong{0};
  const auto work = [&](unsigned thread) {
    std::mt19937_64 random(thread);
    for (int i = 0; i < 4000; ++i) {
      const std::uint64_t key = keys[random() % (keys.size() / 2) * 2 + thread];
      if (tree.get(key) != numbers.at(key)) ++wrong;
      tree.put(key, numbers.at(key));
    }
  };
  { std::jthread first(work, 0), second(work, 1); }
  EXPECT_EQ(wrong, 0u);
  expect_same(tree, numbers);
}

TEST_P(ResumeTest, AnIndexMayBeClosedBeforeAllIsBack) {
  const Numbers numbers = fill(200 * kLeafPairs);
  for (int i = 0; i < 20; ++i) reopened(true);
  for (int i = 0; i < 5; ++i) {
    const Tree tree = reopened(true);
    EXPECT_EQ(tree.get(numbers.rbegin()->first), numbers.rbegin()->second);
  }
  expect_same(reopened(), numbers);
}

TEST_P(ResumeTest, TheBackupHasAQuarterOfTheLeavesAndNothingElse) {
  Numbers numbers = fill(300 * kLeafPairs);
  {
    Tree tree = reopened();
    while (numbers.size() > 100 * kLeafPairs) {  // merges
      const auto victim = numbers.lower_bound(random_());
      if (victim == numbers.end()) continue;
      tree.erase(victim->first);
      numbers.erase(victim);
    }
    expect_same(tree, numbers);
  }
  const Numbers expected = BackupOf(pool_).leaves_it_should_have();
  EXPECT_GT(expected.size(), 20U);
  EXPECT_EQ(BackupOf(pool_).leaves(), expected);
  expect_same(reopened(), numbers);  // meets all leaves again
  EXPECT_EQ(BackupOf(pool_).leaves(), expected);
}

TEST_P(ResumeTest, ABackupThatLagsBehindIsMadeGood) {
  const Numbers numbers = fill(100 * kLeafPairs);
  std::uint64_t before = 0, after = 0;
  {
    BackupOf backup(pool_);
    std::vector<std::uint64_t> lows;
    backup.tree().scan(0,
                       [&](std::uint64_t low, std::uint64_t) { return lows.push_back(low), true; });
    before = lows.size();
    std::shuffle(lows.begin(), lows.end(), random_);
    for (std::size_t i = 0; i < lows.size() * 3 / 4; ++i) backup.tree().erase(lows[i]);
    after = backup.tree().size();
  }
  ASSERT_LT(after, before / 2);
  {
    const Tree tree = reopened();
    std::vector<std::uint64_t> keys = keys_of(numbers);
    std::shuffle(keys.begin(), keys.end(), random_);
    for (const std::uint64_t key : keys) ASSERT_EQ(tree.get(key), numbers.at(key)) << key;
    expect_same(tree, numbers);
  }
  EXPECT_EQ(BackupOf(pool_).tree().size(), before);
}

TEST_P(ResumeTest, ABackupThatLeadsAstrayIsAnError) {
  const Numbers numbers = fill(100 * kLeafPairs);
  {
    BackupOf backup(pool_);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;
    backup.tree().scan(0, [&](std::uint64_t low, std::uint64_t leaf) {
      return entries.emplace_back(low, leaf), true;
    });
    for (const auto& [low, leaf] : entries) backup.tree().put(low, leaf + 1);  // no leaf is there
  }
  const Tree tree = reopened();
  try {
    tree.get(numbers.rbegin()->first);
    ADD_FAILURE() << "the backup was believed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
  }
}

std::string name_of(const testing::TestParamInfo<std::uint64_t>& budget) {
  if (budget.param == 0) return "none";
  return budget.param == kUnlimited ? "all" : "some";
}

INSTANTIATE_TEST_SUITE_P(Buffers, ResumeTest, testing::Values(0, 32 * 576, kUnlimited), name_of);

}  // namespace
}  // namespace perdix
