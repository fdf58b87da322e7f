// Runs all systems over all workloads, in one process, with the same keys in the same order.
#pragma once

#include "ycsb/report.h"

namespace perdix::bench {

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`. Call it while the process has one thread if the workload "reopen" takes part: it
/// forks.
Report run(const Config& config);

}  // namespace perdix::bench
