// Memory that the machine has at hand for a system that grows.
//
// A hypervisor takes back the memory that a guest has left free for some seconds, and to provide it
// again takes far longer than to clear it: 0.5 GB/s were seen where memory that had just been freed
// was cleared at 23 GB/s. Who touches such memory first pays for it, the system's thread or one
// that works beside it, so a run on several threads would mostly tell how much the machine had left
// free before. So the driver takes memory before a system begins, touches it, and gives it back
// as the system takes some, a little ahead. Every system gets the same.
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

/// Bytes of memory that nobody uses, not even as a cache of files.
std::uint64_t free_memory();

class WarmMemory {
 public:
  /// This is given back ahead of what a system takes, and is the unit of giving back.
  static constexpr std::uint64_t kAhead = std::uint64_t{16} << 20;

  /// Takes and touches so many bytes, in whole units, but at most half of the free memory. `free`
  /// is asked for that, and by follow(). Throws bad_alloc.
  explicit WarmMemory(std::uint64_t bytes, std::function<std::uint64_t()> free = free_memory);
  WarmMemory(const WarmMemory&) = delete;
  WarmMemory& operator=(const WarmMemory&) = delete;

  /// Before a phase begins, and once its predecessor has ended: gives back what was ahead once
  /// more, since it may have lain there for long. From now on as much shall be free.
  void begin_phase();

  /// Gives back as much as was taken since. Cost: a system call, and another where it gives some
  /// back.
  void follow();

  /// Resident bytes of this process that are here.
  std::uint64_t held() const;

 private:
  void give_back(std::uint64_t bytes);

  const std::function<std::uint64_t()> free_;

  mutable std::mutex mutex_;  // guards what follows
  detail::util::HugeVector<std::byte> memory_;
  std::size_t held_;          // so many of the first bytes are resident
  std::uint64_t wanted_ = 0;  // so many shall be free
};

/// Calls follow() often enough for any system, from a thread of its own.
class WarmMemoryKeeper {
 public:
  explicit WarmMemoryKeeper(WarmMemory& memory);

 private:
  std::jthread thread_;
};

}  // namespace perdix::bench
