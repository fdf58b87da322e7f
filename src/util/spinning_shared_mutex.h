// The readers-writer lock that plug-ins of Tips have too, for critical sections that are mostly
// shorter than it takes to put a thread to sleep and to wake it.
#pragma once

#include <perdix/tips_locks.h>

namespace perdix::detail::util {

using perdix::tips::SpinningSharedMutex;

}  // namespace perdix::detail::util
