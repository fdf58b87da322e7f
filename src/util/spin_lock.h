// A small lock for short critical sections that are rarely contended. Works with std::lock_guard.
// Not recursive.
#pragma once

#include <atomic>
#include <thread>

namespace perdix::detail::util {

/// Called in a loop that waits for another thread: pauses the core, and now and then yields it.
class Backoff {
 public:
  void pause() noexcept {
    if (++rounds_ % kRoundsPerYield != 0) {
      __builtin_ia32_pause();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr unsigned kRoundsPerYield = 64;
  unsigned rounds_ = 0;
};

class SpinLock {
 public:
  void lock() noexcept {
    Backoff backoff;
    while (!try_lock()) backoff.pause();
  }

  bool try_lock() noexcept {
    // The relaxed look first keeps waiting threads from stealing the line of the holder.
    return !locked_.load(std::memory_order_relaxed) &&
           !locked_.exchange(true, std::memory_order_acquire);
  }

  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace perdix::detail::util
