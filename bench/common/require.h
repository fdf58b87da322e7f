// Refuses what a command line or a file asks for.
#pragma once

#include <string>

#include <perdix/error.h>

namespace perdix::bench {

[[noreturn]] inline void refuse(const std::string& message) {
  throw Error(Errc::invalid_argument, message);
}

inline void require(bool condition, const std::string& message) {
  if (!condition) refuse(message);
}

}  // namespace perdix::bench
