#include "ycsb/warm_memory.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "ycsb/memory.h"

namespace perdix::bench {
namespace {

constexpr std::uint64_t kUnit = WarmMemory::kAhead;

/// A system whose free memory the test decides.
struct System {
  std::atomic<std::uint64_t> free = 1000 * kUnit;

  std::function<std::uint64_t()> meter() {
    return [this] { return free.load(); };
  }
};

TEST(FreeMemory, IsThere) { EXPECT_GT(free_memory(), 0U); }

TEST(WarmMemory, IsResidentUntilItIsGivenBack) {
  System system;
  const std::uint64_t before = resident_anonymous_bytes();
  WarmMemory memory(8 * kUnit, system.meter());
  EXPECT_EQ(memory.held(), 8 * kUnit);
  EXPECT_GE(resident_anonymous_bytes(), before + 8 * kUnit);
  memory.begin_phase();
  system.free -= 5 * kUnit;
  memory.follow();
  EXPECT_EQ(memory.held(), 2 * kUnit);
  EXPECT_LT(resident_anonymous_bytes(), before + 3 * kUnit);
}

TEST(WarmMemory, TakesWholeUnitsAndAtMostHalfOfWhatIsFree) {
  System system;
  EXPECT_EQ(WarmMemory(1, system.meter()).held(), kUnit);
  EXPECT_EQ(WarmMemory(0, system.meter()).held(), 0U);
  system.free = 9 * kUnit;
  EXPECT_EQ(WarmMemory(100 * kUnit, system.meter()).held(), 4 * kUnit);
}

TEST(WarmMemory, GivesBackWhatIsTakenAndAUnitAheadOfEachPhase) {
  System system;
  WarmMemory memory(8 * kUnit, system.meter());
  memory.follow();
  EXPECT_EQ(memory.held(), 8 * kUnit) << "no phase has begun";
  memory.begin_phase();
  EXPECT_EQ(memory.held(), 7 * kUnit);
  memory.follow();
  EXPECT_EQ(memory.held(), 7 * kUnit) << "nobody has taken any";
  system.free -= 1;
  memory.follow();
  EXPECT_EQ(memory.held(), 6 * kUnit);
  memory.begin_phase();
  EXPECT_EQ(memory.held(), 5 * kUnit);
  system.free += kUnit;
  memory.follow();
  EXPECT_EQ(memory.held(), 5 * kUnit) << "somebody gave some back";
  system.free -= 100 * kUnit;
  memory.follow();
  EXPECT_EQ(memory.held(), 0U);
}

TEST(WarmMemory, IsFollowedByAThread) {
  System system;
  WarmMemory memory(4 * kUnit, system.meter());
  memory.begin_phase();
  const WarmMemoryKeeper keeper(memory);
  system.free -= 2 * kUnit;
  while (memory.held() != kUnit) std::this_thread::yield();
}

}  // namespace
}  // namespace perdix::bench
