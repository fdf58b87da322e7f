// The report of YCSB's workloads.
#pragma once

#include "common/report.h"
#include "ycsb/results.h"

namespace perdix::bench {

/// A table for each phase, for sizes and for what a meter counted, and the summaries. The JSON has
/// every round.
Report report_of(const Results& results);

/// Throws as measure() does.
Report run(const Config& config);

}  // namespace perdix::bench
