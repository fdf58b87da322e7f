// `perdix elf …` on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "perdix/commands.h"

namespace perdix::tool {

/// Adds the command with its own commands; the one that runs sets `status`.
void add_elf(CLI::App& app, ExitStatus& status);

}  // namespace perdix::tool
