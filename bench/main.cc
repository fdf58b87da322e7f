// perdix-bench: compares indexes with LMDB, RocksDB and maps in DRAM. `perdix bench` runs it.
#include <string_view>

#include <CLI/CLI.hpp>

#include "common/command_line.h"
#include "figure/command.h"
#include "special/special.h"
#include "ycsb/driver.h"
#include "ycsb/options.h"
#include "ycsb/progress.h"
#include "ycsb/report.h"

namespace perdix::bench {
namespace {

constexpr const char* kDescription =
    "Compares indexes with LMDB, RocksDB and maps in DRAM: the workloads of YCSB, and phases of\n"
    "single operations.";

constexpr const char* kFooter =
    "Exit status: 0 if all answers were right, 1 if a system gave a wrong answer or lost a "
    "record,\n"
    "2 after an error.\n\n"
    "Beside this:\n"
    "  perdix bench figure NAME     makes the figures of a paper; `perdix bench figure` lists "
    "them\n"
    "  perdix bench special NAME    other experiments; `perdix bench special` lists them\n\n"
    "Examples:\n"
    "  perdix bench\n"
    "  perdix bench --records 10M --workloads load,get,absent,reopen --repeat 3\n"
    "  perdix bench --threads 1,2,4 --workloads load,a,c --html bench.html --json bench.json\n"
    "  perdix bench --keys bytes --key-size 32 --value-size 100 --durability power --pool-dir "
    "/mnt/disk";

int main_of(int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string_view("figure"))
    return run_figure_command(argc - 1, argv + 1);
  if (argc > 1 && argv[1] == std::string_view("special"))
    return run_special_command(argc - 1, argv + 1);
  CLI::App app(kDescription, "perdix-bench");
  app.footer(kFooter);
  Options options;
  add_options(app, options);
  return run_program(app, argc, argv, options.config, progress_display);
}

}  // namespace
}  // namespace perdix::bench

int main(int argc, char** argv) { return perdix::bench::main_of(argc, argv); }
