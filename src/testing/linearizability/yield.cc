#include "testing/linearizability/yield.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Instead of the C library's, for all of the program.
extern "C" int sched_yield() noexcept {
  auto* probe = dynamic_cast<perdix::testing::YieldingProbe*>(perdix::pm::installed_probe());
  if (probe == nullptr) return static_cast<int>(syscall(SYS_sched_yield));
  probe->on_yield();
  return 0;
}
