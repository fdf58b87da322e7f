// Names of parameterized tests, from names that have more than GoogleTest allows.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace perdix::detail::util {

/// The name with '_' for each character that is no letter and no digit: "tips:hash" is "tips_hash".
inline std::string test_name(std::string name) {
  const auto refused = [](unsigned char c) { return std::isalnum(c) == 0; };
  std::ranges::replace_if(name, refused, '_');
  return name;
}

}  // namespace perdix::detail::util
