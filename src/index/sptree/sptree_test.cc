// What SpTree does to its leaves, as seen by its statistics: fill, splits, merges, filters,
// recovery. The behaviour of the calls is tested by tests/conformance, for all engines alike.
#include <atomic>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "index/sptree/buffer_shape.h"
#include "index/sptree/layout.h"
#include "index/sptree/mnode.h"
#include "util/test_directory.h"

namespace perdix {
namespace {

using detail::index::sptree::kLeafPairs;

class SpTreeTest : public testing::Test {
 protected:
  SpTreeTest() : pool_(Pool::create(path_)) {}

  Pool reopen() {
    pool_.close();
    return pool_ = Pool::open(path_);
  }

  testing_files::TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("test.pool");
  Pool pool_;
};

template <class Tree>
void expect_sound(const Tree& tree) {
  for (const std::string& problem : tree.check().problems) ADD_FAILURE() << problem;
}

TEST_F(SpTreeTest, AscendingLoadFillsLeavesCompletely) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t");
  constexpr std::uint64_t kKeys = 100 * kLeafPairs;
  for (std::uint64_t key = 0; key < kKeys; ++key) tree.put(key, key);
  EXPECT_EQ(tree.stats().leaves, kKeys / kLeafPairs);
  expect_sound(tree);
}

TEST_F(SpTreeTest, DescendingAndRandomLoadsFillAtLeastHalf) {
  SpTree<std::uint64_t, std::uint64_t> descending(pool_, "d");
  SpTree<std::uint64_t, std::uint64_t> random(pool_, "r");
  std::mt19937_64 generator(1);
  constexpr std::uint64_t kKeys = 200 * kLeafPairs;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    descending.put(kKeys - i, i);
    random.put(generator(), i);
  }
  EXPECT_LE(descending.stats().leaves, 2 * kKeys / kLeafPairs + 1);
  EXPECT_LE(random.stats().leaves, 16 * kKeys / (10 * kLeafPairs));  // ln 2 full on average
  expect_sound(descending);
  expect_sound(random);
}

TEST_F(SpTreeTest, EmptiedLeavesAreFreed) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t");
  const std::uint64_t before = pool_.info().allocated;
  constexpr std::uint64_t kKeys = 50 * kLeafPairs;
  for (const bool ascending : {true, false}) {
    for (std::uint64_t i = 0; i < kKeys; ++i) tree.put(i, i);
    EXPECT_GT(pool_.info().allocated, before);
    for (std::uint64_t i = 0; i < kKeys; ++i) tree.erase(ascending ? i : kKeys - 1 - i);
    EXPECT_EQ(tree.size(), 0u);
    EXPECT_LE(tree.stats().leaves, 2u) << (ascending ? "ascending" : "descending");
    expect_sound(tree);
  }
}

TEST_F(SpTreeTest, SparseNeighboursMerge) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t");
  constexpr std::uint64_t kKeys = 100 * kLeafPairs;
  for (std::uint64_t i = 0; i < kKeys; ++i) tree.put(i, i);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    if (i % 10 != 0) tree.erase(i);
  }
  EXPECT_LE(tree.stats().leaves, 2 * kKeys / 10 / (kLeafPairs / 2) + 2);
  expect_sound(tree);
}

TEST_F(SpTreeTest, BothEndsOfTheRangeAreOrdinaryKeys) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t");
  constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();
  for (std::uint64_t i = 0; i < 5 * kLeafPairs; ++i) {
    tree.put(i, i);
    tree.put(kTop - i, ~i);
  }
  EXPECT_EQ(tree.get(0), 0u);
  EXPECT_EQ(tree.get(kTop), kTop);
  EXPECT_EQ(tree.scan(kTop, 10).size(), 1u);
  EXPECT_TRUE(tree.erase(kTop));
  EXPECT_FALSE(tree.get(kTop));
  expect_sound(tree);
}

TEST_F(SpTreeTest, LongCommonPrefixesGiveShortBounds) {
  SpTree<std::string, std::uint64_t> tree(pool_, "t");
  const std::string tail(200, 'x');
  for (int i = 0; i < 4000; ++i) tree.put(std::to_string(i) + tail, static_cast<std::uint64_t>(i));
  const IndexStats stats = tree.stats();
  EXPECT_LT(stats.dram_bytes / stats.leaves, 550u)
      << "bounds are cut to what separates their leaves";
  expect_sound(tree);
}

TEST_F(SpTreeTest, BuffersTakeDramUpToTheBudget) {
  constexpr std::uint64_t kKeys = 1000 * kLeafPairs;
  const auto dram = [&](const std::string& name, std::uint64_t budget) {
    SpTree<std::uint64_t, std::uint64_t> tree(pool_, name, SpTreeOptions{budget});
    std::mt19937_64 generator(3);
    for (std::uint64_t i = 0; i < kKeys; ++i) tree.put(generator(), i);
    expect_sound(tree);
    EXPECT_EQ(tree.size(), kKeys);
    return tree.stats().dram_bytes;
  };
  const std::uint64_t none = dram("none", 0);
  const std::uint64_t some = dram("some", 100'000);
  const std::uint64_t all = dram("all", kUnlimited);
  EXPECT_GT(some, none);
  EXPECT_LT(some, none + 200'000) << "buffers come in slabs";
  EXPECT_GT(all, some + 200'000);
}

TEST_F(SpTreeTest, BufferedPairsSurviveReopeningWithoutABudget) {
  std::set<std::uint64_t> expected;
  {
    SpTree<std::uint64_t, std::string> tree(pool_, "t", SpTreeOptions{kUnlimited});
    std::mt19937_64 generator(4);
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t key = generator() % 2000;
      tree.put(key, std::to_string(key));
      if (i % 3 == 0) tree.erase(key);
      if (i % 3 == 0)
        expected.erase(key);
      else
        expected.insert(key);
    }
    expect_sound(tree);
  }
  reopen();
  SpTree<std::uint64_t, std::string> tree(pool_, "t");
  std::set<std::uint64_t> found;
  tree.scan(0, [&](std::uint64_t key, std::string_view value) {
    EXPECT_EQ(value, std::to_string(key));
    return found.insert(key).second;
  });
  EXPECT_EQ(found, expected);
  for (const std::uint64_t key : expected) EXPECT_TRUE(tree.erase(key));
  EXPECT_EQ(tree.size(), 0u);
  expect_sound(tree);
}

// The only buffer goes from one leaf to the other and back, while readers look for what it has.
TEST_F(SpTreeTest, AReaderMayLoseTheBufferThatItLooksAt) {
  SpTree<std::uint64_t, std::uint64_t> tree(
      pool_, "t",
      SpTreeOptions{
          sizeof(detail::index::sptree::WriteBuffer<detail::index::sptree::Mnode<std::uint64_t>>)});
  constexpr std::uint64_t kFar = std::uint64_t{1} << 32, kFew = 8;
  constexpr int kTurn = 2048;  // long enough for the other leaf to count as cold
  for (std::uint64_t key = 0; key < 2 * kLeafPairs; ++key) tree.put(key * kFar, 0);
  std::atomic<bool> done = false;
  std::jthread reader([&] {
    for (std::uint64_t i = 0; !done.load(); ++i) {
      EXPECT_EQ(tree.get(i % kFew + 1).value_or(1), 1u);
      EXPECT_EQ(tree.get(kFar * kLeafPairs * 3 / 2 + i % kFew + 1).value_or(1), 1u);
    }
  });
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint64_t key = i % kFew + 1 + (i / kTurn % 2 == 0 ? 0 : kFar * kLeafPairs * 3 / 2);
    if (!tree.insert(key, 1)) tree.erase(key);
  }
  done = true;
  reader.join();
  expect_sound(tree);
}

// A leaf that is not written to any more would keep its records in the log without end, and all
// that came after them, if the maintenance did not clean up.
TEST_F(SpTreeTest, TheLogStaysShortThoughSomeLeavesAreNeverWrittenToAgain) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t", SpTreeOptions{100'000});  // log: 2 MiB
  std::mt19937_64 generator(5);
  constexpr std::uint64_t kQuiet = std::uint64_t{1} << 32;
  for (int i = 0; i < 5000; ++i) tree.put(kQuiet + generator() % kQuiet, 0);
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < 600'000; ++i) {  // 18 MiB of records
    const std::uint64_t key = generator() % 200;
    if (!tree.erase(key)) tree.put(key, i);
    if (i == 100'000) before = tree.stats().pm_bytes;  // all stripes have segments
  }
  EXPECT_LT(tree.stats().pm_bytes, before + (1 << 19)) << "the log's limit alone would allow more";
  expect_sound(tree);
}

// Where the middle of the values is far from the middle of the keys.
TEST_F(SpTreeTest, SplitsOfSkewedKeysLeaveLeavesHalfFull) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t");
  std::mt19937_64 generator(3);
  for (int i = 0; i < 2'000; ++i) {
    const std::uint64_t key = generator();
    tree.put(key >> key % 56, 0);  // few of each magnitude: half of the values has one of the keys
  }
  const IndexStats stats = tree.stats();
  EXPECT_GT(stats.leaves, 10u);
  EXPECT_LT(stats.leaves, stats.pairs / 56);
  expect_sound(tree);
}

TEST_F(SpTreeTest, GetManyNeedsRoomForItsAnswers) {
  SpTree<std::uint64_t, std::uint64_t> tree(pool_, "t");
  tree.put(1, 10);
  const std::vector<std::uint64_t> keys = {1, 2};
  std::vector<std::optional<std::uint64_t>> values(1);
  EXPECT_THROW(tree.get_many(keys, values), Error);
  values.assign(3, 7);
  tree.get_many(keys, values);
  EXPECT_EQ(values[0], 10u);
  EXPECT_EQ(values[1], std::nullopt);
  EXPECT_EQ(values[2], 7u) << "what is behind the answers is not touched";
}

TEST_F(SpTreeTest, ReopeningRebuildsTheSameIndex) {
  std::set<std::string> expected;
  IndexStats before;
  {
    SpTree<std::string, std::string> tree(pool_, "t");
    std::mt19937_64 generator(2);
    for (int i = 0; i < 5000; ++i) {
      const std::string key(generator() % 12, static_cast<char>('a' + generator() % 3));
      tree.put(key + std::to_string(generator() % 3000), std::string(generator() % 50, 'v'));
    }
    tree.scan("",
              [&](std::string_view key, std::string_view) { return expected.emplace(key), true; });
    expect_sound(tree);  // which also brings to the backup what waits for that
    before = tree.stats();
  }
  reopen();
  SpTree<std::string, std::string> tree(pool_, "t");
  std::set<std::string> found;
  tree.scan("", [&](std::string_view key, std::string_view) { return found.emplace(key), true; });
  EXPECT_EQ(found, expected);
  EXPECT_EQ(tree.size(), expected.size());
  const IndexStats after = tree.stats();
  EXPECT_EQ(after.pairs, expected.size());
  EXPECT_EQ(after.leaves, before.leaves);
  EXPECT_EQ(after.pm_bytes, before.pm_bytes);
  expect_sound(tree);
}

}  // namespace
}  // namespace perdix
