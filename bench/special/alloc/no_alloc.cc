// Where libpmemobj is not installed.
#include "common/command_line.h"
#include "special/special.h"
#include "terminal/progress.h"

namespace perdix::bench {

int run_alloc(int, char**) {
  terminal::tell("perdix-bench: this build was made without libpmemobj\n");
  return kFailed;
}

}  // namespace perdix::bench
