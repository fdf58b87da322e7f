// What the threads of one run do, drawn from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "testing/linearizability/map.h"
#include "testing/linearizability/operation.h"
#include "testing/linearizability/recorder.h"
#include "util/random.h"

namespace perdix::testing {

struct PlannedCall {
  bool scan = false;
  Action action = Action::get;
  Key key = 0;            ///< or where the scan begins
  Value value = 0;        ///< differs in all calls of a run
  std::size_t limit = 0;  ///< of the scan
  bool tends = false;     ///< nothing but that; `value` says what

  /// Executes it.
  void operator()(Log& log) const;
};

using PlannedCalls = std::vector<PlannedCall>;

struct SchedulePlan {
  std::vector<Key> keys;              ///< all that occur, ascending
  PlannedCalls before;                ///< by one thread, before the others start
  std::vector<PlannedCalls> threads;  ///< what each thread does
  std::vector<PlannedCalls> again;    ///< what each does after a crash; or nothing

  std::uint64_t calls() const;
};

/// Eight kinds of beginning: few keys; as many as a leaf holds, so that the next insert splits it;
/// so few left of two leaves that the next erase merges them; few keys of which one is inserted and
/// erased by all threads; the same in a leaf that is nearly full, so that it is replaced while they
/// do; a sparse leaf at the right of one from which a few erases more make a sparse one; a last
/// leaf that is full, behind which all threads insert and erase, so that leaves come and go; and
/// many leaves, full or sparse, so that what is above them changes, too. Else most calls go to four
/// keys.
SchedulePlan draw_plan(detail::util::Random& random, bool ordered, const LeafSizes& leaf,
                       std::optional<Beginning> beginning = std::nullopt);

}  // namespace perdix::testing
