// Many threads in few leaves, so that splits, joins and everything else meet.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "index/common/test_crew.h"
#include "index/nbtree/test_tree.h"
#include "util/random.h"

namespace perdix::index::nbtree {
namespace {

/// All threads insert the same keys and erase them again: each insert that returns true has one
/// erase.
TEST(NbTreeStress, OneOfSeveralInsertsWins) {
  constexpr std::uint64_t kRounds = 20000, kShared = 8;
  TestTree<std::uint64_t, std::uint64_t> tree;
  std::array<std::atomic<std::int64_t>, kShared> there{};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kCrewThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          const std::uint64_t key = random.below(kShared);
          if (random.one_in(2)) {
            if (tree->insert(key, i)) there[key].fetch_add(1);
          } else {
            if (tree->erase(key)) there[key].fetch_sub(1);
          }
        }
      });
    }
  }
  for (std::uint64_t key = 0; key < kShared; ++key)
    EXPECT_EQ(there[key].load(), tree->contains(key) ? 1 : 0) << key;
  tree.expect_sound_pool();
}

TEST(NbTreeStress, Numbers) { Crew<TestTree<std::uint64_t, std::uint64_t>, std::uint64_t>().run(); }
TEST(NbTreeStress, Strings) { Crew<TestTree<std::string, std::uint64_t>, std::string>().run(); }

}  // namespace
}  // namespace perdix::index::nbtree
