// Plans: the operations of a phase. They are drawn before the clock starts, so that drawing them is
// not measured, and every system gets the same operations in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ycsb/workload.h"

namespace perdix::bench {

/// The records in an index: numbers first <= n < next.
struct Records {
  std::uint64_t first = 0;
  std::uint64_t next = 0;

  std::uint64_t count() const noexcept { return next - first; }
};

/// Makes one plan at a time, in memory that stays resident, so that plans do not change the
/// process's memory during a measurement.
class Planner {
 public:
  /// Room for plans of up to `capacity` operations.
  explicit Planner(std::uint64_t capacity) : ops_(capacity) {}

  /// Returns the operations of each thread, valid until the next call. Sets `records` to what it
  /// will be after the phase. A phase that only erases ends early when no record is left. Throws
  /// perdix::Error invalid_argument if the workload needs records and there are none.
  ///
  /// Threads insert and erase disjoint record numbers. They read only records that existed before
  /// the phase and records that they have inserted themselves. The expected answers therefore do
  /// not depend on the interleaving.
  std::vector<std::span<const Op>> plan(const Workload& workload, Distribution distribution,
                                        std::uint64_t operations, unsigned threads,
                                        std::uint64_t seed, Records& records);

 private:
  std::vector<Op> ops_;
};

}  // namespace perdix::bench
