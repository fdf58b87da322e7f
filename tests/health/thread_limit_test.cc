// The system cannot create threads. Opening a pool is then an Error without side effects, and open
// indexes work without the threads that they would have started.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "health/suite.h"
#include "support/pool_options.h"
#include "support/values.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using testing_files::TempDirectory;

constexpr uid_t kNobody = 65534;

class ThreadLimit : public ::testing::TestWithParam<WorkloadEntry> {
 protected:
  void SetUp() override {
    std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
  }

  /// Runs `body` in a child that may not start threads after limit() was called.
  template <class Body>
  static void in_child(Body body) {
    expect_success(start([&] {
      // Root has no limit.
      ASSERT_TRUE(::geteuid() != 0 || ::setresuid(kNobody, kNobody, kNobody) == 0);
      body();
    }));
  }

  static void limit(rlim_t threads) {
    rlimit now{};
    ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &now), 0);
    now.rlim_cur = std::min(threads, now.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &now), 0);
    if (threads > 1) return;
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  }

  template <class Call>
  static void expect_no_threads(Call call) {
    testing_files::expect_error(Errc::no_threads, "", call);
  }

  static PoolOptions options() {
    PoolOptions options = options_for_all_engines();
    options.max_size = 256 << 20;
    return options;
  }
  static Datum key(std::uint64_t i) {
    return GetParam().type->key_kind == Kind::u64 ? Datum(i)
                                                  : Datum("key " + std::to_string(100000 + i));
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_P(ThreadLimit, OpeningIsAnErrorAndNothingElse) {
  in_child([&] {
    limit(1);
    expect_no_threads([&] { Pool::create(path_, options()); });
    expect_no_threads([&] { Pool::open_or_create(path_, options()); });
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
    limit(RLIM_INFINITY);
    Pool::create(path_, options()).close();
    limit(1);
    expect_no_threads([&] { Pool::open(path_, options()); });
    expect_no_threads([&] { Pool::verify(path_, options()); });
    limit(RLIM_INFINITY);
    Pool::open(path_, options()).close();
  });
}

TEST_P(ThreadLimit, IndexesWorkWithoutThreads) {
  constexpr std::uint64_t kPairs = 20000;
  const auto value = [](std::uint64_t i) { return tagged_value(GetParam().type->value_kind, i); };
  in_child([&] {
    {
      auto pool = Pool::create(path_, options());
      limit(1);
      AnyIndex index = GetParam().type->open(pool, kName);
      for (std::uint64_t i = 0; i < kPairs; ++i) index.put(key(i), value(i));
      for (std::uint64_t i = 0; i < kPairs; i += 2) index.erase(key(i));
      for (std::uint64_t i = 0; i < kPairs; ++i) index.put(key(i), value(i + 1));
    }
    limit(RLIM_INFINITY);
    auto pool = Pool::open(path_, options());
    limit(1);
    {
      const AnyIndex index = GetParam().type->open(pool, kName);
      EXPECT_EQ(index.size(), kPairs);
      for (std::uint64_t i = 0; i < kPairs; i += 7)
        EXPECT_TRUE(DatumView(*index.get(key(i))) == DatumView(value(i + 1))) << i;
      EXPECT_TRUE(index.check().ok());
    }
    EXPECT_TRUE(pool.check().ok());
    pool.close();
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, ThreadLimit, ::testing::ValuesIn(index_workloads()), name_of);

}  // namespace
}  // namespace perdix::test
