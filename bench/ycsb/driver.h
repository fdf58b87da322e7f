// Runs all systems over all workloads, in one process, with the same keys in the same order.
#pragma once

#include "ycsb/results.h"

namespace perdix::bench {

/// Throws perdix::Error invalid_argument if the configuration makes no sense.
void validate(const Config& config);

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`. Call it while the process has one thread if the workload "reopen" takes part: it
/// forks.
Results measure(const Config& config);

}  // namespace perdix::bench
