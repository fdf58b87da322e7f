#include "epoch/version_lock.h"

#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace perdix::detail::epoch {
namespace {

template <class Lock>
class VersionLockTest : public testing::Test {};

using Locks = testing::Types<VersionLock, SmallVersionLock>;
TYPED_TEST_SUITE(VersionLockTest, Locks);

TYPED_TEST(VersionLockTest, EachUnlockIsANewVersion) {
  TypeParam lock;
  const auto before = lock.read_begin();
  EXPECT_TRUE(lock.read_validate(before));
  lock.lock();
  EXPECT_TRUE(lock.locked());
  EXPECT_FALSE(lock.read_validate(before));
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.try_upgrade(before));
  lock.unlock();
  EXPECT_FALSE(lock.locked());
  EXPECT_FALSE(lock.read_validate(before));
  EXPECT_NE(lock.read_begin(), before);
  EXPECT_FALSE(TypeParam::obsolete(lock.read_begin()));
}

TYPED_TEST(VersionLockTest, UpgradesOnlyTheVersionThatWasRead) {
  TypeParam lock;
  const auto first = lock.read_begin();
  EXPECT_TRUE(lock.try_upgrade(first));
  lock.unlock();
  EXPECT_FALSE(lock.try_upgrade(first));
  EXPECT_FALSE(lock.locked());
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TYPED_TEST(VersionLockTest, ObsoleteIsForEver) {
  TypeParam lock;
  const auto before = lock.read_begin();
  lock.lock();
  EXPECT_FALSE(lock.is_obsolete());
  lock.unlock_obsolete();
  EXPECT_TRUE(lock.is_obsolete());
  EXPECT_TRUE(TypeParam::obsolete(lock.read_begin()));
  EXPECT_FALSE(lock.read_validate(before));
  EXPECT_FALSE(lock.locked());
}

// Writers keep all words equal; a reader that validates must have seen them equal, and never an
// older state than before.
TYPED_TEST(VersionLockTest, ValidatedReadsAreConsistent) {
  constexpr std::uint64_t kWrites = 20'000;
  TypeParam lock;
  std::array<std::atomic<std::uint64_t>, 8> words{};
  std::atomic<int> writers{2};
  auto write = [&] {
    for (std::uint64_t i = 0; i < kWrites; ++i) {
      lock.lock();
      const std::uint64_t next = words[0].load(std::memory_order_relaxed) + 1;
      for (auto& word : words) word.store(next, std::memory_order_relaxed);
      lock.unlock();
    }
    --writers;
  };
  auto read = [&] {
    std::uint64_t last = 0;
    while (writers > 0) {
      const auto version = lock.read_begin();
      std::array<std::uint64_t, 8> seen;
      for (std::size_t i = 0; i < words.size(); ++i)
        seen[i] = words[i].load(std::memory_order_relaxed);
      if (!lock.read_validate(version)) continue;
      for (std::uint64_t value : seen) ASSERT_EQ(value, seen[0]);
      ASSERT_GE(seen[0], last);
      last = seen[0];
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(write);
    threads.emplace_back(read);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(words[0].load(), 2 * kWrites);
}

// Upgrading is compare-and-swap on the version, so increments by optimistic upgrade are never lost.
TYPED_TEST(VersionLockTest, UpgradesExcludeEachOther) {
  TypeParam lock;
  std::atomic<std::uint64_t> value{0};
  auto increment = [&] {
    for (int done = 0; done < 20'000;) {
      const auto version = lock.read_begin();
      const std::uint64_t seen = value.load(std::memory_order_relaxed);
      if (!lock.try_upgrade(version)) continue;
      value.store(seen + 1, std::memory_order_relaxed);
      lock.unlock();
      ++done;
    }
  };
  std::thread other(increment);
  increment();
  other.join();
  EXPECT_EQ(value.load(), 40'000u);
}

}  // namespace
}  // namespace perdix::detail::epoch
