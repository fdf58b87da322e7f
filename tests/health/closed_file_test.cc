// A program that closes the descriptor of its pool's file, whose number becomes another file's, for
// every workload: no other file is touched, the pool is read on, and the next opening has
// what was acknowledged.
#include <filesystem>

#include <gtest/gtest.h>

#include "health/failing_pool.h"
#include "pool/pool_core.h"

namespace perdix::test {
namespace {

using testing_files::content_of;
using testing_files::descriptor_of;
using testing_files::expect_error;
using testing_files::ReplacedDescriptor;

class ClosedFile : public FailingPool {
 protected:
  ClosedFile() : FailingPool(Durability::process) {}

  /// Calls that only read return, the others are refused.
  static void expect_read_only(Pool& pool, testing::Instance& instance, const Course& course) {
    EXPECT_TRUE(instance.shows(course.state()));
    expect_none(instance.check());
    EXPECT_EQ(pool.indexes().size(), 1u);
    EXPECT_GT(pool.info().size, 0u);
    for (const testing::NamedCall& call : instance.calls()) {
      SCOPED_TRACE(call.name);
      if (call.writes) {
        expect_error(Errc::io_error, "only be read", call.call);
      } else {
        EXPECT_NO_THROW(call.call());
      }
    }
    expect_error(Errc::io_error, "only be read", [&] { GetParam().open(pool, "another"); });
    EXPECT_TRUE(instance.shows(course.state()));
  }
};

TEST_P(ClosedFile, IsReadOnAndLosesNothing) {
  std::filesystem::copy_file(base_, path_);
  const std::filesystem::path other = directory_.file("app.log");
  Course course = course_so_far();
  {
    auto pool = Pool::open(path_, options_);
    const ReplacedDescriptor replaced(descriptor_of(path_), other);
    {
      const auto instance = open(pool);
      ASSERT_FALSE(work(course, *instance, kSteps)) << "what needs no descriptor was refused";
      expect_error(Errc::io_error, "test.pool", [&] { pool.core()->extend(pool.info().size + 1); });
      expect_read_only(pool, *instance, course);
    }
    EXPECT_THROW(pool.close(), Error);
    EXPECT_EQ(content_of(other), ReplacedDescriptor::kContent);
  }
  expect_consistent(path_, course, false);
}

INSTANTIATE_TEST_SUITE_P(Engines, ClosedFile, ::testing::ValuesIn(few_workloads()), name_of);

}  // namespace
}  // namespace perdix::test
