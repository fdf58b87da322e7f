// Experiments that no file describes, because they are code: perdix-bench special NAME.
#pragma once

#include <span>
#include <string_view>

namespace perdix::bench {

struct Special {
  std::string_view name;
  std::string_view about;
  /// argv[0] is the name. Returns the exit status. The process may be started anew, with another
  /// environment.
  int (*run)(int argc, char** argv);
};

int run_alloc(int argc, char** argv);
int run_elf(int argc, char** argv);
int run_nbtree(int argc, char** argv);
int run_resume(int argc, char** argv);

/// perdix-bench special: argv[0] is "special". Returns the exit status.
int run_special_command(int argc, char** argv);

}  // namespace perdix::bench
