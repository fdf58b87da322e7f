// A readers-writer lock for critical sections that are mostly shorter than it takes to put a thread
// to sleep and to wake it. Works with std::unique_lock and std::shared_lock. Not recursive.
#pragma once

#include <shared_mutex>

#include "util/spin_lock.h"

namespace perdix::detail::util {

/// A std::shared_mutex that is tried for about a microsecond before a thread sleeps.
class SpinningSharedMutex {
 public:
  void lock() {
    if (!spin([&] { return mutex_.try_lock(); })) mutex_.lock();
  }

  void lock_shared() {
    if (!spin([&] { return mutex_.try_lock_shared(); })) mutex_.lock_shared();
  }

  bool try_lock() { return mutex_.try_lock(); }
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  void unlock() { mutex_.unlock(); }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  static constexpr unsigned kTries = 100;

  template <class Try>
  static bool spin(Try succeeds) {
    Backoff backoff;
    for (unsigned i = 0; i < kTries; ++i) {
      if (succeeds()) return true;
      backoff.pause();
    }
    return false;
  }

  std::shared_mutex mutex_;
};

}  // namespace perdix::detail::util
