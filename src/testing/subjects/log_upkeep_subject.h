// SpTree with a log whose limits are so small that the explorer's few steps clean chains, take
// checkpoints, fill and free segments, and run out of room. A log of usual limits is explored with
// the engine (sptree+buffers), and the log alone (wal).
#pragma once

#include <memory>

#include <perdix/types.h>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

/// Keys and values are of the same kind.
std::unique_ptr<Subject> make_log_upkeep_subject(Kind kind, detail::pm::Domain domain);

}  // namespace perdix::testing
