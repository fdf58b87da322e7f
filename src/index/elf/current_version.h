// The Version that queries read, and the cache of its lists, which a thread fills (caches/cache.h)
// while queries already read through it.
//
// Invariants:
//   1. The current Version has the cache that the policy asks for, or a filler that is at it.
//   2. A filler runs only on the cache of the current Version.
//
// Thread-safe, but for open(). A reader of get() is in an epoch::Guard, or keeps others from
// replacing the Version.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include <perdix/elf.h>

#include "epoch/reclaimer.h"
#include "index/elf/caches/filler.h"
#include "index/elf/version.h"

namespace perdix::detail::index::elf {

class CurrentVersion {
 public:
  explicit CurrentVersion(epoch::Reclaimer& reclaimer) : reclaimer_(reclaimer) {}
  ~CurrentVersion();
  CurrentVersion(const CurrentVersion&) = delete;
  CurrentVersion& operator=(const CurrentVersion&) = delete;

  /// Sets the first Version, which has no cache.
  void open(std::unique_ptr<Version> first) {
    version_.store(first.release(), std::memory_order_release);
  }
  bool is_open() const { return version_.load(std::memory_order_acquire) != nullptr; }

  const Version& get() const { return *version_.load(std::memory_order_acquire); }
  Version& get() { return *version_.load(std::memory_order_acquire); }

  /// Calls commit() when `next` has its cache, then puts it in place. Returns the one before, which
  /// queries may still read. Throws bad_alloc: then it has not called commit().
  template <class Commit>
  std::unique_ptr<Version> replace(std::unique_ptr<Version> next, const Commit& commit) {
    const std::lock_guard lock(mutex_);
    next->exchange_cache(new_cache(*next, policy_).release());
    commit();
    filler_.stop();  // it reads the version that goes
    Version* const before = version_.exchange(next.release(), std::memory_order_acq_rel);
    fill_cache();
    return std::unique_ptr<Version>(before);
  }

  /// Replaces the cache by the one that a policy asks for. Throws bad_alloc.
  void cache(const CachePolicy& policy);

  CachePolicy policy() const {
    const std::lock_guard lock(mutex_);
    return policy_;
  }
  bool is_filling() const { return filler_.running(); }
  void wait_for_cache() const { filler_.wait(); }

 private:
  std::unique_ptr<Cache> new_cache(const Version& version, const CachePolicy& policy) const;
  void fill_cache();

  epoch::Reclaimer& reclaimer_;
  std::atomic<Version*> version_{nullptr};
  mutable std::mutex mutex_;  // guards starting and stopping the filler, and the policy
  CachePolicy policy_;
  Filler filler_;
};

}  // namespace perdix::detail::index::elf
