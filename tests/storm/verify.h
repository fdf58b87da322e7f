// Compares open indexes with the model while no thread works, and checks pools. Each function
// throws a Finding. One thread may use them.
#pragma once

#include <optional>
#include <string>

#include <perdix/perdix.h>

#include "storm/board.h"
#include "storm/client.h"
#include "storm/plan.h"

namespace perdix::test::storm {

/// Names an index in a finding.
std::string title(const OpenIndex& index);

/// The version that the key's value tells of; nothing without a value.
Found version_of(const OpenIndex& index, std::uint32_t number, const std::optional<Datum>& value);

/// Each key by get(), all pairs by scan(), size(), check(); decides what was in flight.
void compare_all(OpenIndex& index, Seat& seat);

/// Decides the hot keys alone. Few, so each worker does it before it writes.
void settle_hot(OpenIndex& index, Seat& seat);

/// Behind calls that may leave a drop unfinished: only one to which a failure has `struck` may, and
/// then the board says so of the pool until it is opened again.
void note_unfinished_drops(const Pool& pool, unsigned number, bool struck, Board& board);

/// Pool::check(), which tells of nothing but such drops; no index may be open.
void check_pool(Pool& pool, unsigned number, Board& board);

}  // namespace perdix::test::storm
