// Durability on an ordinary file: collects the pages that a thread has flushed and syncs them at
// its next fence.
//
// A failed sync is sticky: after one it is unknown what is on the disk (the kernel may have marked
// pages clean that it could not write). Invariants:
//   1. One sync runs at a time. The kernel reports an error once for an open file, to the sync that
//      asks first: another one at the same time would be told that its pages, which were lost too,
//      are on the disk.
//   2. on_failure() is called once, by the thread whose sync failed, before any sync() returns that
//      did not sync: what it does precedes whatever any thread stores behind such a fence.
//   3. After it nothing is synced any more.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pm/file.h"

namespace perdix::pm {

class PageSync {
 public:
  /// on_failure must not throw: if it can't keep what is stored from now on from the file, the
  /// process must end. It must neither note nor sync.
  explicit PageSync(std::function<void()> on_failure) : on_failure_(std::move(on_failure)) {}

  /// Notes that [p, p+n) must be on the disk when this thread's next sync() returns. If there is no
  /// memory for that, it is synced at once.
  void note(const void* p, std::size_t n) noexcept;

  /// Syncs all pages that this thread noted. Cost: one msync per run of neighbouring pages.
  void sync();

  /// Syncs all of a file, its length included. Throws io_error, also if an earlier sync failed.
  void sync_file(File& file);

  /// True once a sync has failed.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

 private:
  struct Run {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  void add_noted(Run run);
  std::vector<Run> take_noted();
  bool sync_run(Run run);
  void fail() noexcept;

  std::mutex mutex_;
  std::unordered_map<std::thread::id, std::vector<Run>> noted_;

  const std::function<void()> on_failure_;
  std::mutex syncing_;  // held during a sync
  std::atomic<bool> failed_{false};
};

}  // namespace perdix::pm
