// The turns of threads, without an index: what they announce is all that the scheduler sees.
#include "testing/linearizability/scheduler.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/test_eventually.h"
#include "util/test_threads.h"

namespace perdix::testing {
namespace {

constexpr unsigned kThreads = 3;
constexpr std::uint64_t kPointsEach = 200;

/// The threads in the order of their points. One thread at a time runs, so it needs no lock.
using Order = std::vector<unsigned>;

/// Every thread announces its points. After `last` points in all, if there are as many, the turn
/// passes for good.
Order run(std::uint64_t seed, std::uint64_t last) {
  Scheduler scheduler(kThreads, seed, kThreads * kPointsEach);
  Order order;
  std::vector<std::jthread> threads;
  for (unsigned number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      const Scheduler::Member member(scheduler, number);
      for (std::uint64_t i = 0; i < kPointsEach; ++i) {
        if (order.size() == last) scheduler.pass_for_good_after(0);
        order.push_back(number);
        scheduler.point();
      }
    });
  }
  scheduler.watch();
  return order;
}

/// How often the turn goes from a thread to another after the first `from` points.
std::size_t changes(const Order& order, std::size_t from) {
  std::size_t found = 0;
  for (std::size_t i = from + 1; i < order.size(); ++i) found += order[i] != order[i - 1];
  return found;
}

TEST(Scheduler, AfterTheTurnHasPassedForGoodThreadsRunToTheirEnds) {
  constexpr std::uint64_t kLast = 60;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Order order = run(seed, kLast);
    ASSERT_EQ(order.size(), kThreads * kPointsEach);
    EXPECT_NE(order[kLast], order[kLast + 1]) << "seed " << seed;  // it passes at that point
    // Then it is for each of the others to end, and for the one that it was taken from.
    EXPECT_EQ(changes(order, kLast + 1), kThreads - 1) << "seed " << seed;
  }
}

TEST(Scheduler, OtherwiseTheTurnPassesAllTheTime) {
  std::size_t often = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    often += changes(run(seed, kThreads * kPointsEach), 60) > 20;
  }
  EXPECT_GE(often, 10u);  // the other half of the seeds go by priorities
}

/// A thread sleeps with the turn, which goes to another one. That wakes it, and goes on with the
/// turn.
TEST(Scheduler, ASleeperWaitsForTheTurn) {
  Scheduler scheduler(2, 1, 2);
  std::atomic<pid_t> sleeper{0};
  std::atomic<bool> called{false}, awake{false}, went_on{false};
  std::vector<std::jthread> threads;
  for (unsigned number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      const Scheduler::Member member(scheduler, number);
      if (sleeper == 0) {
        sleeper = ::gettid();
        called.wait(false);
        awake = true;
        scheduler.await_turn();
        went_on = true;
        return;
      }
      called = true;
      called.notify_all();
      detail::util::eventually("the sleeper is awake", [&] { return awake.load(); });
      detail::util::eventually("the sleeper waits for the turn",
                               [&] { return went_on || detail::util::is_asleep(sleeper); });
      EXPECT_FALSE(went_on);
    });
  }
  scheduler.watch();
  threads.clear();  // joins
  EXPECT_TRUE(went_on);
}

/// While others sleep for the lock of a thread, it goes on with the turn: they have no use for it.
/// Once it has released the lock, the turn may be taken from the second of them, too, which sleeps
/// until the first has released it.
TEST(Scheduler, SleepersGetNoTurnWhileAnotherThreadGoesOn) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Scheduler scheduler(kThreads, seed, kPointsEach);
    std::mutex lock;
    std::atomic<unsigned> came{0};
    std::uint64_t takings = kThreads;
    std::vector<std::jthread> threads;
    for (unsigned number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        const Scheduler::Member member(scheduler, number);
        const bool first = came++ == 0;  // it has the turn, and the lock before its first point
        const std::lock_guard guard(lock);
        if (!first) return;
        for (std::uint64_t i = 0; i < kPointsEach; ++i) scheduler.point();
        takings = scheduler.takings();
      });
    }
    scheduler.watch();
    threads.clear();  // joins
    EXPECT_LE(takings, kThreads - 1) << "seed " << seed;
    EXPECT_EQ(scheduler.points(), kPointsEach);
  }
}

}  // namespace
}  // namespace perdix::testing
