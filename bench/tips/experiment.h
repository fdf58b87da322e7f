// The experiments of Tips' paper that two cores suffice for.
#pragma once

#include "experiments/report.h"
#include "tips/config.h"

namespace perdix::bench::plugged {

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`. Call it while the process has one thread: it forks.
ExperimentReport run(const Config& config);

}  // namespace perdix::bench::plugged
