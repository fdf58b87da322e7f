// The experiments of the SpTree paper's section 3 that two cores suffice for.
#pragma once

#include "experiments/report.h"
#include "spot_on/config.h"

namespace perdix::bench::spot_on {

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`. Call it while the process has one thread: it forks.
ExperimentReport run(const Config& config);

}  // namespace perdix::bench::spot_on
