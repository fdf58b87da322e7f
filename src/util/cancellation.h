// Threads that the program cancels (pthread_cancel).
#pragma once

#include <pthread.h>

namespace perdix::detail::util {

/// While one exists, the calling thread is not cancelled, but by the first call after it that may
/// wait. A wait is where a cancelled thread ends: it unwinds as an exception that no handler of
/// ours sees, past work that other threads rely on, and where nothing may be thrown it ends the
/// process.
class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace perdix::detail::util
