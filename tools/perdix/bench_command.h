// The command `bench`: runs the program perdix-bench, a separate package, since it links the stores
// that perdix is compared with.
#pragma once

#include <CLI/App.hpp>

namespace perdix::tool {

/// Adds the command. Parsing a command line with it replaces the process by perdix-bench, which
/// gets the rest of the command line, `--help` included. Throws unsupported if there is no such
/// program, and says how to get it.
void add_bench(CLI::App& app);

}  // namespace perdix::tool
