// In place of bench_command.cc where the benchmarks aren't built.
#include <CLI/App.hpp>

#include <perdix/error.h>

#include "perdix/bench_command.h"

namespace perdix::tool {

void add_bench(CLI::App& app, ExitStatus&) {
  CLI::App* command = app.add_subcommand("bench", "Benchmark (not in this build)");
  command->allow_extras();
  command->callback([] {
    throw Error(Errc::unsupported,
                "this build has no benchmark; configure it with -DPERDIX_BENCH=ON, which needs "
                "Abseil, LMDB and RocksDB");
  });
}

}  // namespace perdix::tool
