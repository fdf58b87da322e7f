// Compare-and-swap of words and of pairs in PM.
#include "pm/persist.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace perdix::detail::pm {
namespace {

const Persister kPersister(Domain::cpu_cache, false);

TEST(CompareExchange, ChangesAWordThatIsAsExpected) {
  std::uint64_t word = 1, expected = 1;
  EXPECT_TRUE(kPersister.compare_exchange(word, expected, 2));
  EXPECT_EQ(word, 2u);
  EXPECT_FALSE(kPersister.compare_exchange(word, expected, 3));
  EXPECT_EQ(word, 2u);
  EXPECT_EQ(expected, 2u) << "it tells what is there";
}

TEST(CompareExchange, ChangesAPairOnlyIfBothWordsAreAsExpected) {
  WordPair pair{1, 2};
  for (const WordPair wrong : {WordPair{1, 3}, WordPair{0, 2}}) {
    WordPair expected = wrong;
    EXPECT_FALSE(kPersister.compare_exchange(pair, expected, {wrong.first, 9}));
    EXPECT_TRUE(pair.first == 1 && pair.second == 2);
    EXPECT_TRUE(expected.first == 1 && expected.second == 2) << "it tells what is there";
  }
  WordPair expected{1, 2};
  EXPECT_TRUE(kPersister.compare_exchange(pair, expected, {1, ~std::uint64_t{0}}));
  EXPECT_TRUE(pair.first == 1 && pair.second == ~std::uint64_t{0});
  expected = pair;
  EXPECT_TRUE(kPersister.compare_exchange(pair, expected, {7, pair.second}));
  EXPECT_EQ(pair.first, 7u);
}

TEST(CompareExchange, LosesNothingAmongThreads) {
  constexpr unsigned kThreads = 4, kSteps = 20000;
  WordPair pair{0, 0};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (unsigned i = 0; i < kSteps; ++i) {
          for (WordPair seen{0, 0};;) {
            if (kPersister.compare_exchange(pair, seen, {seen.first, seen.second + 1})) break;
          }
        }
      });
    }
  }
  EXPECT_EQ(pair.second, kThreads * kSteps);
}

}  // namespace
}  // namespace perdix::detail::pm
