// What an episode may take: DRAM, space of the file, and processor time for its operations. The
// bounds are wide, since what they must notice is wrong by orders: leaks, logs that grow for ever,
// locks that threads pass on while they spin. None of them is about time on a clock. Each function
// throws a Finding.
#pragma once

#include <perdix/perdix.h>

#include <optional>
#include <string_view>

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
