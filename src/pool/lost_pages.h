// Pages of open pools that the device does not give: SIGBUS in place of data, or of space.
//
// The handler makes the pool fail (Health), keeps all later stores from the file
// (Mapping::leave_file), and puts a page of zeros where the fault was, so that the thread goes on.
// In this order: whatever a call has read or stored since, it finds the pool unusable before it
// returns. So zeros are never shown, and a store that rests on them never reaches the file.
//
// A signal handler has no argument, so the pools of the process are listed in one place: a list
// that the handler reads without locks. A pool leaves it and then waits until no handler runs.
//
// Thread-safe.
#pragma once

#include <atomic>

#include "pm/mapping.h"
#include "pool/health.h"

namespace perdix::detail::pool {

/// The entry of a pool, as long as the pool is mapped.
class LostPages {
 public:
  LostPages(pm::Mapping& mapping, Health& health);
  LostPages(const LostPages&) = delete;
  LostPages& operator=(const LostPages&) = delete;
  ~LostPages();

  /// For the handler, async-signal-safe: replaces the page of `address` if a pool has it. False if
  /// none has, or the kernel refuses.
  static bool replace(const void* address) noexcept;

  /// In a child of fork(): handlers that ran in other threads do not exist here.
  static void forget_other_threads() noexcept;

 private:
  bool contains(const void* address) const noexcept;

  pm::Mapping& mapping_;
  Health& health_;
  std::atomic<LostPages*> next_{nullptr};
};

}  // namespace perdix::detail::pool
