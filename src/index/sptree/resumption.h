// How far an index is on its way back into DRAM after it was opened (resume.cc).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "wal/chain.h"

namespace perdix::index::sptree {

/// Thread-safe where not said otherwise.
class Resumption {
 public:
  /// Every leaf has a middle node, and every chain of the log a buffer.
  bool done() const { return done_.load(std::memory_order_acquire); }

  /// The lock that whoever makes leaves warm holds.
  std::unique_lock<std::mutex> lock() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return lock;
  }

  /// Lets those go first that need a certain leaf. Called without the lock.
  void give_way() const {
    while (waiting_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
  }

  /// With the lock held.
  void set_done() {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    seconds_.store(passed.count(), std::memory_order_relaxed);
    done_.store(true, std::memory_order_release);
  }

  /// From the opening until it was done; 0 before.
  double seconds() const { return seconds_.load(std::memory_order_relaxed); }

  /// Runs work(stop_token) in the background until it returns, which it does soon once this object
  /// goes away. Throws system_error if there are too many threads.
  template <class Work>
  void start_thread(Work work) {
    working_.store(true, std::memory_order_relaxed);
    try {
      thread_ = std::jthread([this, work](const std::stop_token& stop) {
        work(stop);
        set_idle();
      });
    } catch (const std::system_error&) {
      set_idle();
      throw;
    }
  }

  /// Waits until no work is done in the background.
  void wait_for_thread() const { working_.wait(true, std::memory_order_acquire); }

  wal::Chain closing;  ///< the stale chain that gets its END; guarded by the lock

 private:
  void set_idle() {
    working_.store(false, std::memory_order_release);
    working_.notify_all();
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::atomic<unsigned> waiting_{0};
  std::atomic<bool> done_{false};
  std::atomic<double> seconds_{0};
  std::atomic<bool> working_{false};
  std::jthread thread_;  // last: ends first
};

}  // namespace perdix::index::sptree
