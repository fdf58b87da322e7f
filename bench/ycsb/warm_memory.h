// Keeps resident memory available for a system that grows.
//
// A hypervisor takes back memory that a guest has left free for some seconds. Providing it again
// takes far longer than clearing it: 0.5 GB/s were measured, against 23 GB/s for memory that had
// just been freed. The thread that first touches such memory pays for it, so a run with several
// threads would mostly measure how much memory the machine had left free before. The driver
// therefore allocates and touches memory before a system starts, and frees it slightly ahead of the
// system's growth. Every system gets the same amount.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "util/huge_vector.h"

namespace perdix::bench {

/// Returns the bytes of memory that are unused, not even as a cache of files.
std::uint64_t free_memory();

class WarmMemory {
 public:
  /// The unit of freeing. One unit is kept free ahead of the system's growth.
  static constexpr std::uint64_t kAhead = std::uint64_t{16} << 20;

  /// Allocates and touches `bytes` bytes, rounded up to whole units, but at most half of the free
  /// memory. The constructor and follow() call `free` for that amount. Throws bad_alloc.
  explicit WarmMemory(std::uint64_t bytes, std::function<std::uint64_t()> free = free_memory);
  WarmMemory(const WarmMemory&) = delete;
  WarmMemory& operator=(const WarmMemory&) = delete;

  /// Must be called before each phase, after the previous one has ended. Frees another unit,
  /// because the one that is free may have been unused for long, and keeps that amount free from
  /// now on.
  void begin_phase();

  /// Frees as much as the system has taken since the last call. Cost: one system call, and another
  /// one if it frees memory.
  void follow();

  /// Returns how many bytes this object holds.
  std::uint64_t held() const;

 private:
  void give_back(std::uint64_t bytes);

  const std::function<std::uint64_t()> free_;

  mutable std::mutex mutex_;  // guards what follows
  detail::util::HugeVector<std::byte> memory_;
  std::size_t held_;          // bytes at the start that are resident
  std::uint64_t wanted_ = 0;  // bytes that should be free
};

/// A thread that calls follow() often enough for any system.
class WarmMemoryKeeper {
 public:
  explicit WarmMemoryKeeper(WarmMemory& memory);

 private:
  std::jthread thread_;
};

}  // namespace perdix::bench
