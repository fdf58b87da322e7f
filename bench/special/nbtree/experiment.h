// Those experiments of NbTree's paper (Zhang et al., IEEE TPDS 2024) that no file describes.
#pragma once

#include "common/report.h"
#include "special/nbtree/config.h"

namespace perdix::bench::figures {

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`.
Report run(const Config& config);

}  // namespace perdix::bench::figures
