// Makes the n-th allocation of the process fail: operator new throws std::bad_alloc.
//
// A program that links failing_memory.cc has its operators new and delete. Allocations of C
// libraries (malloc) do not fail: liburcu and libpmem2 do not outlive that. Thread-safe.
#pragma once

#include <cstdint>

namespace perdix::test {

enum class Failing {
  once,     ///< the n-th allocation
  onwards,  ///< the n-th and all that follow
};

/// From its construction to its end allocations are counted, and those fail.
class FailingMemory {
 public:
  /// `n` counts from 1. One at a time.
  explicit FailingMemory(std::uint64_t n, Failing which = Failing::once);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// Whether an allocation has failed.
  static bool hit() noexcept;

  /// While it lives the calling thread's allocations are neither counted nor fail: those of the
  /// test itself.
  class Pause {
   public:
    Pause() noexcept;
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };
};

}  // namespace perdix::test
