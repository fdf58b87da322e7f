#include "util/ticket_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace perdix::util {
namespace {

TEST(TicketLock, ExcludesOthers) {
  TicketLock lock;
  constexpr unsigned kThreads = 4;
  constexpr std::uint64_t kTurns = 20'000;
  std::uint64_t turns = 0;  // not atomic: the lock guards it
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (std::uint64_t i = 0; i < kTurns; ++i) {
          const std::lock_guard guard(lock);
          ++turns;
        }
      });
    }
  }
  EXPECT_EQ(turns, kThreads * kTurns);
}

/// One thread takes it again and again, without a pause in which another could get it by chance;
/// the others get it all the same.
TEST(TicketLock, NobodyIsPassedOver) {
  TicketLock lock;
  std::atomic<bool> done{false};
  std::jthread greedy([&] {
    while (!done) {
      const std::lock_guard guard(lock);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    const std::lock_guard guard(lock);
  }
  done = true;
}

}  // namespace
}  // namespace perdix::util
