// perdix-bench figure: the command line.
#pragma once

namespace perdix::bench {

/// Makes the figures of the file that the first argument names: argv[0] is "figure". Returns the
/// exit status.
int run_figure_command(int argc, char** argv);

}  // namespace perdix::bench
