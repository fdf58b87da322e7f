// Plans: the operations of a phase, drawn before the clock starts, so that choosing them costs
// nothing while measuring and every system gets the same ones in the same order.
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

/// One plan at a time, in memory that is touched once, so that it doesn't disturb measurements of
/// memory.
class Planner {
 public:
  /// Room for plans of up to `capacity` operations.
  explicit Planner(std::uint64_t capacity) : ops_(capacity) {}

  /// Operations for each thread; valid until the next call. `records` becomes what it will be after
  /// the phase. A phase that only erases ends early once nothing is left. Throws perdix::Error
  /// invalid_argument if the workload needs records and there are none.
  ///
  /// Threads insert and erase disjoint record numbers and read, besides the records of before, only
  /// what they inserted themselves: so each expected answer is known, whatever the interleaving.
  std::vector<std::span<const Op>> plan(const Workload& workload, Distribution distribution,
                                        std::uint64_t operations, unsigned threads,
                                        std::uint64_t seed, Records& records);

 private:
  std::vector<Op> ops_;
};

}  // namespace perdix::bench
