// The end of an episode: everything is erased, the space is had by others, everything is dropped,
// and nothing stays. Used by the worker's main thread; throws a Finding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storm/board.h"
#include "storm/client.h"
#include "storm/plan.h"

namespace perdix::test::storm {

/// `indexes` and `pools` are open, and closed behind it.
void run_finale(OpenIndexes& indexes, std::vector<std::optional<Pool>>& pools,
                const std::vector<std::string>& paths, const Episode& episode, Board& board);

}  // namespace perdix::test::storm
