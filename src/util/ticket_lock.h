// A lock that is given in the order in which threads came for it, so that none of them waits long
// while others take it again and again. For critical sections of microseconds. Works with
// std::lock_guard and std::unique_lock. Not recursive.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/spin_lock.h"

namespace perdix::util {

class TicketLock {
 public:
  void lock() noexcept {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    Backoff backoff;
    while (serving_.load(std::memory_order_acquire) != ticket) backoff.pause();
  }

  void unlock() noexcept {
    serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  std::atomic<std::uint32_t> next_{0};     // of the next thread that comes
  std::atomic<std::uint32_t> serving_{0};  // whose turn it is
};

}  // namespace perdix::util
