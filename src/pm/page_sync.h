// Durability on an ordinary file: collects the pages that a thread has flushed and syncs them at
// its next fence.
//
// Thread-safe. A failed sync is sticky: after one, nobody can say what is on the disk (the kernel
// may have dropped the dirty pages), so the pool refuses all further work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace perdix::pm {

class PageSync {
 public:
  /// Notes that [p, p+n) must be on the disk when this thread's next sync() returns.
  void note(const void* p, std::size_t n);

  /// Syncs all pages that this thread noted. Cost: one msync per run of neighbouring pages.
  void sync();

  /// True once a sync has failed.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

 private:
  struct Run {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  std::vector<Run> take_noted();

  std::mutex mutex_;
  std::unordered_map<std::thread::id, std::vector<Run>> noted_;
  std::atomic<bool> failed_{false};
};

}  // namespace perdix::pm
