// The end of an episode: all keys are erased, another index uses the space, all indexes are
// dropped, and nothing may stay allocated. The worker's main thread calls it; it throws a Finding.
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
