// The command line: options, help texts with examples, and error messages.
#pragma once

namespace perdix::tool {

/// Parses the command line, runs the command, and returns the exit status of the process. Errors
/// become one line on standard error.
int run_command_line(int argc, char** argv);

}  // namespace perdix::tool
