// A pool whose device fails, for every workload: steps until one is refused, and what must be there
// after that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "health/suite.h"
#include "support/pool_options.h"
#include "util/test_directory.h"

namespace perdix::test {

class FailingPool : public ::testing::TestWithParam<WorkloadEntry> {
 protected:
  static constexpr std::uint64_t kSeed = 1;
  static constexpr int kSteps = 120;

  /// The closed pool has seen `steps_before` steps.
  explicit FailingPool(Durability durability, DomainChoice domain = DomainChoice::detect,
                       std::uint64_t steps_before = 300)
      : steps_before_(steps_before) {
    options_.durability = durability;
    options_.domain = domain;
    options_.max_size = 64 << 20;
  }

  static std::unique_ptr<testing::Instance> open(const Pool& pool) {
    return GetParam().open(pool, kName);
  }

  Course course_so_far() const { return Course(GetParam(), kSeed, steps_before_); }

  void SetUp() override {
    auto pool = Pool::create(base_, options_);
    {
      const auto instance = open(pool);
      for (Course course(GetParam(), kSeed); course.steps() < steps_before_;)
        course.step(*instance);
    }
    pool.close();
  }

  /// Up to that many steps, fewer if one fails or `stopped`. Returns whether the next step of the
  /// course is in flight.
  static bool work(
      Course& course, testing::Instance& instance, int steps,
      const std::function<bool()>& stopped = [] { return false; }) {
    for (; steps > 0; --steps) {
      try {
        course.call(instance);
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
        return true;
      }
      if (stopped()) return true;
      course.advance();
    }
    return false;
  }

  static void expect_refused(Pool& pool, testing::Instance& instance) {
    test::expect_refused(Errc::io_error, "open it again", pool, instance, GetParam());
  }

  /// Opens the pool: it is sound, and has what was acknowledged, and the step in flight or not.
  /// Returns which. `when_shown` is called when all has been shown.
  bool expect_consistent(
      const std::filesystem::path& path, Course& course, bool in_flight,
      const std::function<void()>& when_shown = [] {}, bool may_be_closed = false) const {
    auto pool = Pool::open(path, options_);
    EXPECT_TRUE(may_be_closed || !pool.info().was_clean);
    bool happened = false;
    {
      const auto instance = open(pool);
      happened = course.next_has_happened(*instance);
      EXPECT_TRUE(in_flight || !happened) << "a step that was not made";
      when_shown();
      expect_none(instance->check());
    }
    expect_none(pool.check().problems);
    return happened;
  }

  const std::uint64_t steps_before_;
  PoolOptions options_ = options_for_all_engines();
  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path base_ = directory_.file("base.pool");
  std::filesystem::path path_ = directory_.file("test.pool");
};

}  // namespace perdix::test
