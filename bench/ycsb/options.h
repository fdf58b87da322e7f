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

/// Adds all options of the benchmark to a command. They are stored in `options` when the command
/// line is parsed; it must live as long as the command.
void add_options(CLI::App& command, Options& options);

}  // namespace perdix::bench
