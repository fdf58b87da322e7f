// Verification of a plugged-in index, and of the logs of one whose plug-in is not there.
#pragma once

#include <perdix/types.h>

#include "index/common/problems.h"
#include "index/tips/guest.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Follows an index, and asks it as a user does. Adds what it finds to the report, with the pairs
/// and nodes of the index. No other thread changes the index.
void check_plugged(pool::PoolCore& pool, const Guest& guest, CheckReport& report,
                   Problems& problems);

/// Checks what an index has besides the plugged-in one, of which this process has no plug-in, and
/// shows its blocks. Changes nothing. Throws corrupt.
void check_logs(pool::PoolCore& pool, std::uint64_t& root, CheckReport& report,
                const pool::BlockVisitor& visit);

}  // namespace perdix::detail::index::tips
