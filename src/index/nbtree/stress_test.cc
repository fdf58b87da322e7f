// Many threads where leaves come and go. What calls do beside each other is tested by
// tests/concurrency, for all engines alike.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "index/nbtree/test_tree.h"
#include "util/random.h"

namespace perdix::detail::index::nbtree {
namespace {

/// Each thread fills and empties a range that all share: positions come and go, and leaves are
/// replaced at positions that are about to go, while others search there.
template <class K, class KeyOf>
void fill_and_empty(KeyOf key_of) {
  constexpr std::uint64_t kKeys = 6 * kCapacity, kRounds = 15, kThreads = 4;
  TestTree<K, std::uint64_t> tree;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (std::uint64_t round = 0; round < kRounds; ++round) {
          for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(key_of(i), i);
          for (std::uint64_t i = 0; i < kKeys; ++i) {
            if (const auto found = tree->get(key_of(i))) {
              EXPECT_EQ(*found, i);
            }
          }
          for (std::uint64_t i = 0; i < kKeys; ++i) tree->erase(key_of(i));
        }
      });
    }
  }
  EXPECT_EQ(tree->size(), 0u);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    EXPECT_EQ(tree->get(key_of(i)), std::nullopt) << i;
    EXPECT_TRUE(tree.finds_leaf_at_once(key_of(i))) << i;
  }
  tree.expect_sound_pool();
}

TEST(NbTreeStress, PositionsOfNumbersComeAndGo) {
  fill_and_empty<std::uint64_t>([](std::uint64_t i) { return i; });
}
TEST(NbTreeStress, PositionsOfStringsComeAndGo) {
  fill_and_empty<std::string>([](std::uint64_t i) { return fmt::format("{:08}", i); });
}

/// A top layer of three levels, of strings that share prefixes, comes and goes beside readers: it
/// is emptied from either end.
TEST(NbTreeStress, ThreeLevelsComeAndGoBesideReaders) {
  constexpr std::uint64_t kLeaves = 5000, kMaxKeys = 400'000;
  const std::string prefix(40, 'p');
  const auto key_of = [&](std::uint64_t i) { return prefix + fmt::format("{:07}", i); };
  const std::string first = "!", last = "~";
  TestTree<std::string, std::uint64_t> tree;
  tree->put(first, 1);
  tree->put(last, 2);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> readers;
  for (unsigned t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      util::Random random(t + 1);
      while (!stop) {
        EXPECT_EQ(tree->get(first), 1u);
        EXPECT_EQ(tree->get(last), 2u);
        const std::uint64_t i = random.below(kMaxKeys);
        if (const auto found = tree->get(key_of(i))) {
          EXPECT_EQ(*found, i);
        }
      }
    });
  }
  std::uint64_t keys = 0;
  for (; keys < kMaxKeys && tree->stats().leaves <= kLeaves; ++keys) tree->put(key_of(keys), keys);
  EXPECT_GT(tree->stats().leaves, kLeaves);
  for (std::uint64_t i = 0; i < keys / 2; ++i) EXPECT_TRUE(tree->erase(key_of(i)));
  for (std::uint64_t i = keys; i-- > keys / 2;) EXPECT_TRUE(tree->erase(key_of(i)));
  EXPECT_LE(tree->stats().leaves, 3u);
  stop = true;
  readers.clear();
  EXPECT_EQ(tree->size(), 2u);
  tree.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::detail::index::nbtree
