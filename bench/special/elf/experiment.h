// The experiments of the paper on selective caching in Elf, and the same queries with other
// systems.
#pragma once

#include "common/report.h"
#include "special/elf/config.h"

namespace perdix::bench::points {

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`.
Report run(const Config& config);

}  // namespace perdix::bench::points
