// The experiments of ElimDa's paper that two cores suffice for.
#pragma once

#include "hash/report.h"

namespace perdix::bench::hashing {

/// Throws perdix::Error if the configuration makes no sense or a contender fails, Cancelled after
/// `config.stop`. Call it while the process has one thread: it forks.
Report run(const Config& config);

}  // namespace perdix::bench::hashing
