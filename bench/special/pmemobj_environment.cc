#include "special/pmemobj_environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace perdix::bench {

void set_pmemobj_up(int argc, char** argv) {
  if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) return;
  ::setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  ::setenv("PMEM_NO_FLUSH", "1", 0);
  std::string program = "perdix-bench", command = "special";
  std::vector<char*> arguments = {program.data(), command.data()};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
}

}  // namespace perdix::bench
