// The command `bench`. It is separate from the others because a build may lack the benchmarks; the
// command then says so.
#pragma once

#include <CLI/App.hpp>

#include "perdix/commands.h"

namespace perdix::tool {

/// Adds the command. Parsing a command line with it runs it and sets `status`.
void add_bench(CLI::App& app, ExitStatus& status);

}  // namespace perdix::tool
