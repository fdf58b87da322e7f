// What a run ran on, for the head of its report.
#pragma once

#include <string>

namespace perdix::bench {

/// Processor, number of CPUs and kernel.
std::string machine_description();

/// Compiler, optimisation and whether this is an instrumented build.
std::string build_description();

/// The median of the time between two looks at the clock in a row, in nanoseconds: what sampling
/// adds to a latency.
double clock_cost_nanoseconds();

}  // namespace perdix::bench
