// The resumption of an SpTree (resume.cc), and the lock that it needs.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "index/common/resumption.h"
#include "wal/chain.h"

namespace perdix::index::sptree {

/// Thread-safe where not said otherwise.
class WarmingLock {
 public:
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

  wal::Chain closing;  ///< the stale chain that gets its END; guarded by the lock

 private:
  std::mutex mutex_;
  std::atomic<unsigned> waiting_{0};
};

/// Done: every leaf has a middle node, and every chain of the log a buffer. Set with the lock held.
class Resumption : public WarmingLock, public index::Resumption {};  // the thread ends first

}  // namespace perdix::index::sptree
