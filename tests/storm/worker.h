// The process that does the work of an episode and that is killed. It continues with the round on
// the board, and ends after the last one.
#pragma once

#include <string>
#include <vector>

#include "storm/board.h"
#include "storm/plan.h"

namespace perdix::test::storm {

/// Runs in a child of the supervisor until the episode is done, or until the process dies as
/// planned. What it finds stands on the board. Returns the exit status.
int run_worker(const Episode& episode, Ground& ground, const std::vector<std::string>& paths);

}  // namespace perdix::test::storm
