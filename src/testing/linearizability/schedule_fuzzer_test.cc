// The fuzzer on a map with flaws: it finds every flaw, finds nothing in the map without one, and a
// seed is a schedule.
#include "testing/linearizability/schedule_fuzzer.h"

#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/linearizability/flawed_map.h"

namespace perdix::testing {
namespace {

using ::testing::IsEmpty;

MakeSystem flawed_systems(detail::pm::Domain domain, Flaw flaw) {
  return [=] { return std::make_unique<FlawedSystem>(domain, flaw); };
}

/// The first seed with which a problem shows.
std::optional<std::uint64_t> first_finding(detail::pm::Domain domain, Flaw flaw,
                                           std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (!run_schedule(flawed_systems(domain, flaw), seed).problems.empty()) return seed;
  }
  return std::nullopt;
}

TEST(ScheduleFuzzer, FindsNothingWrongInFlawlessSystems) {
  for (const detail::pm::Domain domain :
       {detail::pm::Domain::cpu_cache, detail::pm::Domain::memory_controller}) {
    std::uint64_t crashes = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      const ScheduleOutcome outcome = run_schedule(flawed_systems(domain, Flaw::none), seed);
      EXPECT_THAT(outcome.problems, IsEmpty()) << "seed " << seed;
      EXPECT_GT(outcome.points, 0u);
      crashes += outcome.crashed;
    }
    EXPECT_GT(crashes, 30u);
  }
}

TEST(ScheduleFuzzer, ASeedIsASchedule) {
  const MakeSystem make = flawed_systems(detail::pm::Domain::memory_controller, Flaw::none);
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const ScheduleOutcome outcome = run_schedule(make, seed);
    EXPECT_EQ(outcome.points, run_schedule(make, seed).points) << "seed " << seed;
    seen.insert(outcome.points);
  }
  EXPECT_GT(seen.size(), 20u);
}

class FlawTest : public ::testing::TestWithParam<Flaw> {};

TEST_P(FlawTest, IsFound) {
  const auto seed = first_finding(detail::pm::Domain::memory_controller, GetParam(), 1000);
  ASSERT_TRUE(seed.has_value());
  EXPECT_FALSE(
      run_schedule(flawed_systems(detail::pm::Domain::memory_controller, GetParam()), *seed)
          .problems.empty())
      << "seed " << *seed << " does not find it again";
  RecordProperty("seed", std::to_string(*seed));
}

INSTANTIATE_TEST_SUITE_P(All, FlawTest,
                         ::testing::Values(Flaw::insert_looks_without_lock, Flaw::get_without_lock,
                                           Flaw::put_is_not_flushed, Flaw::erase_is_not_fenced,
                                           Flaw::update_returns_too_early,
                                           Flaw::swap_looks_without_lock, Flaw::scan_copies_first,
                                           Flaw::scan_goes_back, Flaw::erase_comes_back));

TEST(ScheduleFuzzer, FlushesMatterOnlyWhereCachesAreLost) {
  EXPECT_EQ(first_finding(detail::pm::Domain::cpu_cache, Flaw::put_is_not_flushed, 50),
            std::nullopt);
}

}  // namespace
}  // namespace perdix::testing
