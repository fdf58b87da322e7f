// How much of an index has returned to DRAM after it was opened, and the thread that does this.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <stop_token>
#include <thread>

#include "util/signals.h"

namespace perdix::detail::index {

/// Thread-safe, but for start_thread() and stop().
class Resumption {
 public:
  /// Everything is back.
  bool done() const { return done_.load(std::memory_order_acquire); }

  /// From now on no caller waits for the thread, which may still have work left.
  void set_done() {
    if (done()) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    seconds_.store(passed.count(), std::memory_order_relaxed);
    done_.store(true, std::memory_order_release);
    set_idle();
  }

  /// From the opening until it was done; 0 before.
  double seconds() const { return seconds_.load(std::memory_order_relaxed); }

  /// Runs work(stop_token) in the background until it returns, which it does soon once this object
  /// goes away. Where the work fails, on damage or for lack of memory, it ends, and the call that
  /// needs the rest gets the error. Without memory or a thread for it nothing runs: leaves come
  /// back when they are needed, and calls that need all leaves do the rest.
  template <class Work>
  void start_thread(Work work) noexcept {
    working_.store(true, std::memory_order_relaxed);
    running_.store(true, std::memory_order_relaxed);
    try {
      thread_ = std::jthread([this, work](const std::stop_token& stop) {
        util::block_signals();
        try {
          work(stop);
        } catch (const std::exception&) {  // as said above
        }
        set_idle();
        set_ended();
      });
    } catch (const std::exception&) {
      set_idle();
      set_ended();
    }
  }

  /// Waits until all is done, or no thread works on it.
  void wait_for_thread() const { working_.wait(true, std::memory_order_acquire); }

  /// Waits until the thread changes nothing any more: what it has left to do when all is done, too.
  void wait_for_end() const { running_.wait(true, std::memory_order_acquire); }

  /// Ends the thread.
  void stop() { thread_ = {}; }

 private:
  void set_idle() {
    working_.store(false, std::memory_order_release);
    working_.notify_all();
  }

  void set_ended() {
    running_.store(false, std::memory_order_release);
    running_.notify_all();
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> done_{false};
  std::atomic<double> seconds_{0};
  std::atomic<bool> working_{false};
  std::atomic<bool> running_{false};
  std::jthread thread_;  // last: ends first
};

}  // namespace perdix::detail::index
