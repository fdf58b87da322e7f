// Makes the n-th allocation fail: operator new throws std::bad_alloc. Counts what is allocated.
//
// A program that links failing_memory.cc has its operators new and delete. Allocations of C
// libraries (malloc) do not fail: liburcu and libpmem2 do not outlive that. Thread-safe, but one
// FailingMemory at a time.
#pragma once

#include <cstdint>

namespace perdix::test {

/// Which allocations are counted, and fail.
struct Failing {
  enum class Threads { caller, others };
  enum class Count { once, onwards };  ///< the n-th, or that and all that follow

  Threads threads = Threads::caller;
  Count count = Count::once;
};

/// From its construction to its end allocations are counted, and those fail.
class FailingMemory {
 public:
  /// `n` counts from 1.
  explicit FailingMemory(std::uint64_t n, Failing which = {});
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// No allocation fails from now on.
  static void stop() noexcept;

  /// Whether an allocation has failed since the last one was constructed.
  static bool hit() noexcept;
};

/// Bytes that operator new has given to any thread and has not got back.
std::int64_t held_bytes() noexcept;

}  // namespace perdix::test
