// What the suites of this folder share: names of cases, what they expect, children that are forks.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pm/test_files.h"
#include "util/test_name.h"
#include "workloads/workloads.h"

namespace perdix::test {

inline constexpr const char* kName = "index";  // of what a pool has in it

inline std::string name_of(const ::testing::TestParamInfo<WorkloadEntry>& info) {
  return detail::util::test_name(info.param.name);
}

inline void expect_none(const testing::Problems& problems) {
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
}

/// Every call of the pool and of what is open in it throws such an error.
inline void expect_refused(Errc code, const std::string& part, Pool& pool,
                           testing::Instance& instance, const WorkloadEntry& entry) {
  std::vector<testing::NamedCall> calls = instance.calls();
  calls.push_back({"info", false, [&] { pool.info(); }});
  calls.push_back({"indexes", false, [&] { pool.indexes(); }});
  calls.push_back({"check of the pool", false, [&] { pool.check(); }});
  calls.push_back({"drop", true, [&] { pool.drop(kName); }});
  calls.push_back({"opening another", true, [&] { entry.open(pool, "another"); }});
  for (const testing::NamedCall& call : calls) {
    SCOPED_TRACE(call.name);
    testing_files::expect_error(code, part, call.call);
  }
}

/// A child that hangs is ended by this, and its test fails. Far more seconds than any needs on a
/// busy machine, and less than ctest leaves to the test.
inline constexpr unsigned kPatience = 300;

/// Forks; the child runs `body` and ends by exit(), as a program does, with the destructors of what
/// is static: 0 if no expectation failed in it.
template <class Body>
pid_t start(Body body) {
  std::fflush(nullptr);  // else the child's exit() writes it once more
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(kPatience);
  const bool failed_before = ::testing::Test::HasFailure();
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the child threw: " << error.what();
  }
  std::exit(::testing::Test::HasFailure() && !failed_before ? 1 : 0);
}

inline void expect_success(pid_t pid) {
  const int status = testing_files::await_child(pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << (WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                              : "exit " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace perdix::test
