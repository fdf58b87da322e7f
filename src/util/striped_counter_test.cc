#include "util/striped_counter.h"

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/spin_lock.h"
#include "util/test_eventually.h"

namespace perdix::detail::util {
namespace {

void run_threads(int count, auto body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body);
  for (auto& thread : threads) thread.join();
}

TEST(StripedCounter, SumsAllThreads) {
  StripedCounter counter;
  run_threads(8, [&] {
    for (int i = 0; i < 10'000; ++i) counter.add(i % 2 == 0 ? 3 : -1);
  });
  EXPECT_EQ(counter.sum(), 8 * 10'000);
}

TEST(Stripe, IsStableAndSpreadsThreads) {
  std::mutex mutex;
  std::set<std::size_t> stripes;
  std::atomic<int> arrived{0};
  run_threads(32, [&] {
    const std::size_t stripe = current_stripe();
    EXPECT_LT(stripe, kStripes);
    ++arrived;
    // All threads live together, so no two share a control block.
    eventually_reaches("all threads have come", arrived, 32);
    EXPECT_EQ(current_stripe(), stripe);
    const std::lock_guard guard(mutex);
    stripes.insert(stripe);
  });
  EXPECT_GE(stripes.size(), 12u) << "32 random draws of 64 give about 25 different ones";
}

TEST(SpinLock, ExcludesOthers) {
  SpinLock lock;
  int value = 0;
  run_threads(4, [&] {
    for (int i = 0; i < 10'000; ++i) {
      const std::lock_guard guard(lock);
      ++value;
    }
  });
  EXPECT_EQ(value, 40'000);
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
}

}  // namespace
}  // namespace perdix::detail::util
