// NbTree with what a crash leaves of inserts that lost: entries of keys that an earlier slot of the
// same leaf holds. The explorer's threads have separate keys, so their inserts never meet;
// here the first state has such entries, whose blobs the ledger claims. Sometimes the index is also
// being dropped.
#pragma once

#include <memory>

#include <perdix/pool.h>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

std::unique_ptr<Subject> make_lost_entries_subject(const IndexInfo& info,
                                                   const IndexOptions& options,
                                                   detail::pm::Domain domain);

}  // namespace perdix::testing
