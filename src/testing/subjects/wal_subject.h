// The log alone, below a minimal index: leaves of a few words, whose changes go to the log first
// and to the leaf when their chain is merged.
//
// Its contents are the values that leaf and chain hold together; its check is the log's own, and
// that the allocated blocks are those of the log and of the values. Steps append, with sessions of
// the allocator and without, merge and end chains, take checkpoints, reclaim, open the log again,
// and replace it by another one.
#pragma once

#include <memory>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_wal_subject(detail::pm::Domain domain);

}  // namespace perdix::testing
