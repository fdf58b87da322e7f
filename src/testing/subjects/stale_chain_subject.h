// SpTree with what a crash leaves of a split whose END was lost: a leaf whose chain in the log
// names pairs that have moved to the next leaf. A split is such a state for one event only; here
// the first state is one, and steps rather concern keys that moved. Of strings, since a number that
// is not in its leaf's range tells so by itself. Meant for an index that is opened without write
// buffers, so that what a step erases is free immediately.
#pragma once

#include <memory>

#include <perdix/pool.h>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_stale_chain_subject(const IndexOptions& options,
                                                  detail::pm::Domain domain);

}  // namespace perdix::testing
