// Limits of an episode: DRAM, file space, and processor time of its operations. The limits are
// wide, because the errors that they must find are off by orders of magnitude: leaks, logs that
// grow without bound, locks on which threads spin. No limit is about wall-clock time. Each function
// throws a Finding.
#pragma once

#include <optional>
#include <string_view>

#include <perdix/perdix.h>

#include "storm/board.h"
#include "storm/client.h"
#include "storm/plan.h"

namespace perdix::test::storm {

/// What stats() says of DRAM and of the pool, against what the index holds and may have. For an
/// index that compare_all() has just been through.
void check_bounds(OpenIndex& index, const IndexOptions& options, Seat& seat);

/// Memory of this process that is no pool's, against what its indexes say that they take.
void check_memory(const OpenIndexes& indexes);

/// Length of a pool's file, against all that the indexes may hold.
void check_file(const Pool& pool, const Episode& episode, unsigned number);

/// Big values of another index get most of a pool whose indexes were emptied or dropped: all but a
/// part of it.
void use_space(Pool& pool, const Episode& episode, unsigned number, const char* whose,
               std::uint64_t parts, Seat& seat);

/// Measures the processor time of a step.
class Pace {
 public:
  Pace(const Episode& episode, const Step& step, const Counters& counters);

  /// At the end of the step: threads that wait do not spin much longer than they work.
  void check() const;

 private:
  const Step& step_;
  const Counters& counters_;
  bool applies_;
  std::uint64_t operations_;
  double seconds_;
};

}  // namespace perdix::test::storm
