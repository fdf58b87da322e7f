// The small lock that plug-ins of Tips have too, for short critical sections that are rarely
// contended.
#pragma once

#include <perdix/tips_locks.h>

namespace perdix::detail::util {

using perdix::tips::Backoff;
using perdix::tips::SpinLock;

}  // namespace perdix::detail::util
