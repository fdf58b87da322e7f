// The machine and the build of a run, for the head of its report.
#pragma once

#include <string>

namespace perdix::bench {

/// Processor, number of CPUs and kernel.
std::string machine_description();

/// Compiler, optimisation and whether this is an instrumented build.
std::string build_description();

/// Returns the median time between two consecutive readings of the clock in nanoseconds. Sampling
/// adds that time to a latency.
double clock_cost_nanoseconds();

}  // namespace perdix::bench
