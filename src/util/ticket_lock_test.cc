#include "util/ticket_lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
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

/// Two threads that give it back only to take it again have it in turns, but for when one of them
/// was not running; of one that holds it long and one that doesn't, neither is passed over.
TEST(TicketLock, NobodyIsPassedOver) {
  using Clock = std::chrono::steady_clock;
  TicketLock lock;
  std::uint64_t long_turns = 0;  // the lock guards it
  std::jthread holder([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::lock_guard guard(lock);
      ++long_turns;
      const auto end = Clock::now() + std::chrono::microseconds(20);
      while (Clock::now() < end) {
      }
    }
  });
  std::vector<std::uint64_t> between(201);
  for (std::uint64_t& turns : between) {
    const std::lock_guard guard(lock);
    turns = std::exchange(long_turns, 0);
  }
  std::nth_element(between.begin(), between.begin() + 100, between.end());
  EXPECT_EQ(between[100], 1U);
}

}  // namespace
}  // namespace perdix::util
