#include "util/spinning_shared_mutex.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/test_eventually.h"
#include "util/test_threads.h"

namespace perdix::detail::util {
namespace {

TEST(SpinningSharedMutex, ReadersShareItAndAWriterHasItAlone) {
  SpinningSharedMutex mutex;
  {
    const std::shared_lock reader(mutex);
    EXPECT_TRUE(std::shared_lock(mutex, std::try_to_lock));
    EXPECT_FALSE(std::unique_lock(mutex, std::try_to_lock));
  }
  const std::unique_lock writer(mutex);
  EXPECT_FALSE(std::shared_lock(mutex, std::try_to_lock));
  EXPECT_FALSE(std::unique_lock(mutex, std::try_to_lock));
}

TEST(SpinningSharedMutex, IsWaitedForLongerThanItIsTried) {
  SpinningSharedMutex mutex;
  std::atomic<unsigned> had = 0;
  std::atomic<pid_t> reads = 0, writes = 0;
  std::unique_lock writer(mutex);
  std::thread reader([&] {
    reads = ::gettid();
    const std::shared_lock lock(mutex);
    ++had;
  });
  std::thread other_writer([&] {
    writes = ::gettid();
    const std::unique_lock lock(mutex);
    ++had;
  });
  const auto sleeps = [](pid_t thread) { return thread != 0 && is_asleep(thread); };
  eventually("both threads sleep", [&] { return (sleeps(reads) && sleeps(writes)) || had != 0; });
  EXPECT_EQ(had, 0u);
  writer.unlock();
  reader.join();
  other_writer.join();
  EXPECT_EQ(had, 2u);
}

TEST(SpinningSharedMutex, NoIncrementIsLost) {
  constexpr std::uint64_t kEach = 20'000;
  SpinningSharedMutex mutex;
  std::uint64_t first = 0, second = 0;
  const auto work = [&] {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      {
        const std::unique_lock lock(mutex);
        ++first, ++second;
      }
      const std::shared_lock lock(mutex);
      EXPECT_EQ(first, second);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, 3 * kEach);
}

}  // namespace
}  // namespace perdix::detail::util
