// What a fuzz target asks for: a trap, which libFuzzer reports together with the input, if it is
// not so.
#pragma once

#include <cstdio>

namespace perdix::fuzz {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fputs(what, stderr);
  __builtin_trap();
}

}  // namespace perdix::fuzz
