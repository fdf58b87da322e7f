// Pages that the device does not give while a pool is used, for every workload: the pool must fail,
// not the process, and its file must have what was acknowledged. Zeros that stand for a lost page
// must neither be shown nor reach the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/bus_errors.h>

#include "health/failing_pool.h"
#include "pm/test_lost_page.h"
#include "support/settings.h"
#include "util/random.h"

namespace perdix::test {
namespace {

constexpr std::size_t kPage = 4096;

class LostPage : public FailingPool {
 protected:
  LostPage() : FailingPool(Durability::process, DomainChoice::detect, 150) { handle_bus_errors(); }

  void SetUp() override {
    if (GetParam().name.starts_with("tips_of:"))
      GTEST_SKIP() << "a container follows what pointers it finds, and zeros may end it";
    FailingPool::SetUp();
  }

  PoolOptions opening(bool survives_power) const {
    PoolOptions options = options_;
    if (survives_power) {
      options.durability = Durability::power;
      options.domain = DomainChoice::page_cache;
    }
    return options;
  }

  /// Offsets of the pages that hold anything.
  static std::vector<std::size_t> pages_in_use(const std::filesystem::path& path) {
    const std::string bytes = testing_files::content_of(path);
    std::vector<std::size_t> pages;
    for (std::size_t page = 0; page < bytes.size(); page += kPage) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(page);
      const auto zero = [](char byte) { return byte == 0; };
      if (!std::all_of(begin, begin + kPage, zero)) pages.push_back(page);
    }
    return pages;
  }

  /// Steps and all reads, until one fails. Returns whether a step is in flight; nothing if none has
  /// failed. What is read is what was written.
  static std::optional<bool> work_and_read(Course& course, testing::Instance& instance) {
    if (work(course, instance, kSteps / 2)) return true;
    try {
      EXPECT_TRUE(instance.shows(course.state()));
      expect_none(instance.check());
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
      return false;
    }
    return std::nullopt;
  }
};

// But Tips: its plug-ins are programs that follow the pointers that they find.
TEST_P(LostPage, KeepsAcknowledgedWrites) {
  if (GetParam().name.starts_with("tips:")) GTEST_SKIP() << "zeros may end it";
  const std::vector<std::size_t> pages = pages_in_use(base_);
  const auto failures_needed = static_cast<int>(scaled(16));
  detail::util::Random random(GetParam().name.size());
  int failures = 0;
  for (int run = 0; failures < failures_needed && !HasFailure(); ++run) {
    SCOPED_TRACE(run);
    ASSERT_LT(run, 20 * failures_needed) << failures << " runs met their lost page";
    std::filesystem::copy_file(base_, path_, std::filesystem::copy_options::overwrite_existing);
    Course course = course_so_far();
    std::optional<bool> in_flight;
    auto pool = Pool::open(path_, opening(run % 2 == 1));
    {
      const auto instance = open(pool);
      ASSERT_FALSE(work(course, *instance, kSteps / 4));
      const auto* const base = reinterpret_cast<const std::byte*>(pool.info().address);
      testing_files::lose_page(base + pages[random.below(pages.size())]);
      in_flight = work_and_read(course, *instance);
      if (in_flight) expect_refused(pool, *instance);
    }
    if (!in_flight) continue;  // the page was not needed
    ++failures;
    EXPECT_THROW(pool.close(), Error);
    expect_consistent(path_, course, *in_flight);
  }
}

// The pool fails while it, or an index of it, is opened.
TEST_P(LostPage, OfAnOpeningIsAnError) {
  const std::vector<std::size_t> pages = pages_in_use(base_);
  std::filesystem::copy_file(base_, path_, std::filesystem::copy_options::overwrite_existing);
  const Course course = course_so_far();
  for (std::size_t i = 0; i < pages.size(); i += 1 + pages.size() / scaled(16)) {
    SCOPED_TRACE(pages[i]);
    {
      auto pool = Pool::open(path_, opening(false));
      const auto* const base = reinterpret_cast<const std::byte*>(pool.info().address);
      testing_files::lose_page(base + pages[i]);
      try {
        EXPECT_TRUE(open(pool)->shows(course.state()));
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
      }
    }
    auto pool = Pool::open(path_, opening(false));
    const auto instance = open(pool);
    ASSERT_TRUE(instance->shows(course.state()));
    expect_none(instance->check());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, LostPage, ::testing::ValuesIn(few_workloads()), name_of);

}  // namespace
}  // namespace perdix::test
