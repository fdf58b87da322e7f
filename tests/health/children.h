// Children of a test that are forks of it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "pm/test_files.h"

namespace perdix::test {

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
