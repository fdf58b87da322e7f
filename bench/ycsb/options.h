// The command line of the benchmark.
#pragma once

#include <memory>

#include <CLI/App.hpp>

#include "ycsb/config.h"

namespace perdix::bench {

struct Options {
  Config config;
  std::shared_ptr<Meter> meter;  ///< what config.meter points to
};

/// Adds the options of the benchmark to a command, but for those that all benchmarks have. Parsing
/// the command line stores them in `options`, which must outlive the command.
void add_options(CLI::App& command, Options& options);

}  // namespace perdix::bench
