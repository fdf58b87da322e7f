// The traffic meter in the benchmark: what each kind of operation costs on the memory bus and on
// the media. It needs an instrumented build; in a normal one there is none.
#pragma once

#include "ycsb/options.h"

namespace perdix::bench {

/// Makes a meter for the run and adds its options to the command; does nothing in a normal build.
void add_meter(CLI::App& command, Options& options);

}  // namespace perdix::bench
