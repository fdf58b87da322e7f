// The command line of the benchmark.
#pragma once

#include <memory>

#include <CLI/App.hpp>

#include "common/outputs.h"
#include "ycsb/config.h"

namespace perdix::bench {

struct Options {
  Config config;
  Outputs outputs;
  std::shared_ptr<Meter> meter;  ///< what config.meter points to
};

/// Adds all options of the benchmark to a command. Parsing the command line stores them in
/// `options`, which must outlive the command.
void add_options(CLI::App& command, Options& options);

}  // namespace perdix::bench
