#include "ycsb/warm_memory.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "util/test_eventually.h"
#include "ycsb/memory.h"

namespace perdix::bench {
namespace {

constexpr std::uint64_t kUnit = WarmMemory::kAhead;

/// A machine whose free memory the test decides.
struct FakeMemory {
  std::atomic<std::uint64_t> free = 1000 * kUnit;

  std::function<std::uint64_t()> meter() {
    return [this] { return free.load(); };
  }
};

TEST(FreeMemory, IsReported) { EXPECT_GT(free_memory(), 0U); }

TEST(WarmMemory, IsResidentUntilGivenBack) {
  FakeMemory fake;
  const std::uint64_t before = resident_anonymous_bytes();
  WarmMemory memory(8 * kUnit, fake.meter());
  EXPECT_EQ(memory.held(), 8 * kUnit);
  EXPECT_GE(resident_anonymous_bytes(), before + 8 * kUnit);
  memory.begin_phase();
  fake.free -= 5 * kUnit;
  memory.follow();
  EXPECT_EQ(memory.held(), 2 * kUnit);
  EXPECT_LT(resident_anonymous_bytes(), before + 3 * kUnit);
}

TEST(WarmMemory, TakesWholeUnitsUpToHalfOfTheFreeMemory) {
  FakeMemory fake;
  EXPECT_EQ(WarmMemory(1, fake.meter()).held(), kUnit);
  EXPECT_EQ(WarmMemory(0, fake.meter()).held(), 0U);
  fake.free = 9 * kUnit;
  EXPECT_EQ(WarmMemory(100 * kUnit, fake.meter()).held(), 4 * kUnit);
}

TEST(WarmMemory, GivesBackTakenMemoryAndAUnitAheadOfEachPhase) {
  FakeMemory fake;
  WarmMemory memory(8 * kUnit, fake.meter());
  memory.follow();
  EXPECT_EQ(memory.held(), 8 * kUnit) << "no phase has begun";
  memory.begin_phase();
  EXPECT_EQ(memory.held(), 7 * kUnit);
  memory.follow();
  EXPECT_EQ(memory.held(), 7 * kUnit) << "none has been taken";
  fake.free -= 1;
  memory.follow();
  EXPECT_EQ(memory.held(), 6 * kUnit);
  memory.begin_phase();
  EXPECT_EQ(memory.held(), 5 * kUnit);
  fake.free += kUnit;
  memory.follow();
  EXPECT_EQ(memory.held(), 5 * kUnit) << "another process gave some back";
  fake.free -= 100 * kUnit;
  memory.follow();
  EXPECT_EQ(memory.held(), 0U);
}

TEST(WarmMemory, KeeperFollowsOnAThread) {
  FakeMemory fake;
  WarmMemory memory(4 * kUnit, fake.meter());
  memory.begin_phase();
  const WarmMemoryKeeper keeper(memory);
  fake.free -= 2 * kUnit;
  detail::util::eventually(  // since what it gives back stays taken
      "the thread has given back all memory", [&] { return memory.held() == 0; },
      [&] { return std::to_string(memory.held()) + " bytes are held"; });
}

}  // namespace
}  // namespace perdix::bench
