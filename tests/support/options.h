// Named options of a command line, for the programs that tests and campaigns run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perdix::test {

/// Named options of a command line: "--name value".
class Options {
 public:
  /// Throws std::invalid_argument for anything that is not "--name value".
  Options(int count, char** arguments);

  std::string text(std::string_view name, std::string_view fallback = "") const;
  std::uint64_t number(std::string_view name, std::uint64_t fallback) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace perdix::test
