// Waits of tests: for a state that must come, as long as that takes, never for a time.
//
// A wait that gives up says for what it has waited, and ends the program: the threads of the test
// may wait for the same, so nothing could join them. Thread-safe.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

namespace perdix::detail::util {

/// After this long a state that has not come will not come: far more than any takes on a busy
/// machine, and less than ctest leaves to a test (600 s).
inline constexpr std::chrono::seconds kPatience{300};

/// Waits until condition() holds. False if it does not within `patience`: that is an error, which
/// the caller must report.
template <class Condition>
[[nodiscard]] bool comes_about(const Condition& condition,
                               std::chrono::seconds patience = kPatience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return condition();
    std::this_thread::yield();  // no sleep: to some tests a thread that sleeps is one that waits
  }
  return true;
}

/// Waits until condition() holds. If it does not, ends the program with a message: `what` should
/// have come about ("the job has run 3 times"), and state() is what there is instead.
template <class Condition, class State>
void eventually(std::string_view what, const Condition& condition, const State& state,
                std::chrono::seconds patience = kPatience) {
  if (comes_about(condition, patience)) return;
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name =
      test == nullptr ? "?" : std::string(test->test_suite_name()) + "." + test->name();
  const std::string message = name + " has waited " + std::to_string(patience.count()) +
                              " s until " + std::string(what) + ". State: " + std::string(state());
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

template <class Condition>
void eventually(std::string_view what, const Condition& condition) {
  eventually(what, condition, [] { return "it does not hold"; });
}

/// Waits until an atomic number, or a call that returns one, has reached `least`.
template <class Number, class Value>
void eventually_reaches(std::string_view what, const Number& number, const Value& least) {
  const auto now = [&] {
    if constexpr (requires { number(); }) {
      return number();
    } else {
      return number.load();
    }
  };
  eventually(
      what, [&] { return !(now() < least); },
      [&] { return std::to_string(now()) + " of " + std::to_string(least); });
}

/// Whether a future has its value.
template <class Future>
bool is_ready(const Future& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace perdix::detail::util
