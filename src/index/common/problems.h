// Collects what check() finds.
#pragma once

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/types.h>

namespace perdix::detail::index {

/// Collects sentences, a hundred at most: a damaged index can have millions of problems.
class Problems {
 public:
  explicit Problems(CheckReport& report) : report_(report) {}

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t kMaxProblems = 100;
    if (holds || report_.problems.size() >= kMaxProblems) return;
    report_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  CheckReport& report_;
};

/// Calls check(), which throws where it cannot go on: that is a problem of the report.
template <class Check>
void as_problem(CheckReport& report, Check check) {
  try {
    check();
  } catch (const Error& error) {
    Problems(report).expect(false, "{}", error.what());
  }
}

}  // namespace perdix::detail::index
