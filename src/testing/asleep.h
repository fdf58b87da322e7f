// Whether the system has put a thread to sleep: for example for a lock of a library, or for a grace
// period.
#pragma once

#include <sys/types.h>

namespace perdix::testing {

/// Of this process. False once it has ended. Cost: reads a file of /proc.
bool is_asleep(pid_t thread);

}  // namespace perdix::testing
