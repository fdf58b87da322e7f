// NbTree's ledger by itself, under the explorer: words that lead to blocks stand for the index, and
// a second table takes blocks from the same allocator, so that a name which outlives its block is
// detected: opening frees the block although it has a new owner.
#pragma once

#include <memory>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_ledger_subject(detail::pm::Domain domain);

}  // namespace perdix::testing
