// Compares open indexes with the model while no thread works, and checks pools. Each function
// throws a Finding. Used by one thread.
#pragma once

#include <perdix/perdix.h>

#include <string>

#include "storm/board.h"
#include "storm/client.h"
#include "storm/plan.h"

namespace perdix::test::storm {

/// Each key by get(), all pairs by scan(), size(), check(); decides what was in flight.
void compare_all(OpenIndex& index, Seat& seat);

/// Decides the hot keys alone. Few, so each worker does it before it writes.
void settle_hot(OpenIndex& index, Seat& seat);

/// Bounds of memory: what stats() says of DRAM and of the pool, against what the index holds and
/// may have. For an index that compare_all() has just been through.
void check_bounds(OpenIndex& index, const IndexOptions& options, Seat& seat);

/// Pool::check(); no index may be open.
void check_pool(Pool& pool, Seat& seat);

}  // namespace perdix::test::storm
