// Hints that are left and asked for while tables that have become too small are given back.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/sptree/hints.h"
#include "util/random.h"
#include "util/test_eventually.h"

namespace perdix::detail::index::sptree {
namespace {

TEST(HintsStress, TablesGrowWhileHintsAreLeftAndAskedFor) {
  constexpr std::uint64_t kRange = std::uint64_t{1} << 40, kWidth = kRange / 1000;
  constexpr Hints::Ref kNodes = 100;
  constexpr unsigned kThreads = 3, kRounds = 30;
  epoch::Reclaimer reclaimer;
  util::Arena arena;
  for (unsigned round = 0; round < kRounds; ++round) {
    Hints hints(arena, reclaimer);
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> wrong{0}, found{0};
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(round * kThreads + t);
        while (!stop.load()) {
          const epoch::Guard guard;
          const std::uint64_t low = random.below(kRange - kWidth);
          hints.note(low, low + kWidth, static_cast<Hints::Ref>(1 + random.below(kNodes)));
          const Hints::Ref hint = hints.of(random.below(kRange));
          wrong += hint > kNodes ? 1 : 0;
          found += hint != 0 ? 1 : 0;
        }
      });
    }
    for (std::uint64_t nodes = 5000; nodes < 100'000; nodes *= 2) {
      const epoch::Guard guard;
      hints.grow(nodes, 0, kRange);
    }
    util::eventually_reaches("a hint was found", found, 1u);
    stop.store(true);
    threads.clear();
    EXPECT_EQ(wrong.load(), 0u) << "nobody has left such a hint";
    reclaimer.drain();
  }
}

}  // namespace
}  // namespace perdix::detail::index::sptree
