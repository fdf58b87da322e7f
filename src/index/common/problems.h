// What a verification found: sentences, a hundred at most, since a damaged index can have millions
// of problems.
#pragma once

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <perdix/types.h>

namespace perdix::index {

class Problems {
 public:
  explicit Problems(CheckReport& report) : report_(report) {}

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t kMost = 100;
    if (holds || report_.problems.size() >= kMost) return;
    report_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  CheckReport& report_;
};

}  // namespace perdix::index
