// Locks for plug-ins of Tips, made for short critical sections. They lie in the object of an index,
// where renew_locks() constructs them anew after a crash, or in its nodes. A lock in a node is
// announced (Memory::add) before it is taken, so that a crash takes it back: only put and erase may
// take such a lock. They work with std::lock_guard, std::unique_lock and std::shared_lock, and are
// not recursive.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <thread>

namespace perdix::tips {

/// Called in a loop that waits for another thread: pauses the core, and now and then yields it.
class Backoff {
 public:
  /// Waits for a moment.
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

/// A lock of one byte for short critical sections that are rarely contended.
class SpinLock {
 public:
  /// Waits until the lock is free, and takes it.
  void lock() noexcept {
    Backoff backoff;
    while (!try_lock()) backoff.pause();
  }

  /// Takes the lock if it is free. Returns whether it did.
  bool try_lock() noexcept {
    // The relaxed look first keeps waiting threads from stealing the line of the holder.
    return !locked_.load(std::memory_order_relaxed) &&
           !locked_.exchange(true, std::memory_order_acquire);
  }

  /// Gives the lock back.
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

/// A readers-writer lock for critical sections that are mostly shorter than it takes to put a
/// thread to sleep and to wake it: a std::shared_mutex that is tried for about a microsecond before
/// a thread sleeps.
class SpinningSharedMutex {
 public:
  /// Waits until no thread has the lock, and takes it.
  void lock() {
    if (!spin([&] { return mutex_.try_lock(); })) mutex_.lock();
  }

  /// Waits until no writer has the lock, and takes it as one of its readers.
  void lock_shared() {
    if (!spin([&] { return mutex_.try_lock_shared(); })) mutex_.lock_shared();
  }

  /// Takes the lock if no thread has it. Returns whether it did.
  bool try_lock() { return mutex_.try_lock(); }
  /// Takes the lock as a reader if no writer has it. Returns whether it did.
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  /// Gives back what lock() has taken.
  void unlock() { mutex_.unlock(); }
  /// Gives back what lock_shared() has taken.
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

}  // namespace perdix::tips
