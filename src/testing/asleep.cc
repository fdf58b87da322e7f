#include "testing/asleep.h"

#include <fstream>
#include <string>

#include <fmt/format.h>

namespace perdix::testing {

// The state follows the name, which is in parentheses and may hold any others.
bool is_asleep(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
}

}  // namespace perdix::testing
