// What the tests of TipsOf share: a pool whose processes die, and containers beside a model.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/pool.h>
#include <perdix/tips_of.h>

#include "index/tips_of/test_points.h"
#include "util/test_directory.h"

namespace perdix::detail::index::tips_of {

using Model = std::map<TestNumber, TestNumber>;

/// A pool whose file outlives processes that open it.
class TipsOfTest : public ::testing::Test {
 protected:
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{1} << 30;
    return options;
  }
  Pool open(const PoolOptions& options = TipsOfTest::options()) const {
    return Pool::open_or_create(path_, options);
  }

  /// Runs work() in a child. Returns how the child has ended.
  template <class Work>
  static int status_of(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  /// Runs work(pool) in a process that is killed when it has returned.
  template <class Work>
  void die_after(Work work) const {
    const int status = status_of([&] {
      const Pool pool = open();
      work(pool);
      ::kill(::getpid(), SIGKILL);
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }

  void expect_sound(const Pool& pool) const {
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }

  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

/// What error a call throws.
template <class Call>
Errc error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return Errc::not_found;
}

/// All of a container, by an iteration, which must show each key once and in order.
template <class Calls>
Model contents(const typename Calls::Container& container) {
  Model model;
  TestNumber last = 0;
  for (const auto& element : container) {
    const auto [key, value] = Calls::pair_of(element);
    EXPECT_TRUE(model.emplace(key, value).second) << "a key is there twice";
    EXPECT_TRUE(!Calls::kOrdered || key >= last) << "the order is wrong";
    last = key;
  }
  return model;
}

template <class Calls>
Model contents(const TipsOf<typename Calls::Container>& opened) {
  return opened.read([](const auto& container) { return contents<Calls>(container); });
}

}  // namespace perdix::detail::index::tips_of
