// The experiments of NbTree's paper (Zhang et al., IEEE TPDS 2024) that need no more than two
// cores.
#pragma once

#include "nbtree/report.h"

namespace perdix::bench::figures {

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`.
Report run(const Config& config);

}  // namespace perdix::bench::figures
