// nbtree_bench: the experiments of NbTree's paper that need no more than two cores.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "nbtree/experiment.h"
#include "nbtree/providers.h"
#include "ycsb/progress.h"

namespace perdix::bench::figures {
namespace {

constexpr const char* kDescription =
    "The experiments of NbTree's paper (Zhang et al., IEEE TPDS 2024) that need no more than two\n"
    "cores, over NbTree, other indexes of perdix, and a B-tree in DRAM.\n\n"
    "  latency   get, insert, update and erase, one thread (figure 6)\n"
    "  space     DRAM and persistent memory for each pair, by number of pairs (figure 8, table "
    "IV)\n"
    "  skew      throughput by skew and share of writes, one and two threads (figure 11);\n"
    "            beside them two threads that share nothing\n"
    "  allocator NbTree's inserts with Calloc, libpmemobj and a naive allocator (figure 15)\n"
    "  domain    the latencies with eADR, and with ADR, where lines are written back (figure "
    "17)\n"
    "  conflicts conflicts in leaves during updates of hot keys, with and without locks (figure "
    "10)\n"
    "  decoupled NbTree, and a form of it that has a leaf's metadata in PM (figure 13)\n"
    "  locks     NbTree, and forms of it that lock leaves (figure 14)\n\n"
    "Every answer is compared with the expected one.";

constexpr const char* kFooter =
    "Numbers of records and pairs may end in k, M or G. Take an idle machine.\n"
    "\"allocator\" is for caches that survive power failures; with PMEM_NO_FLUSH=0 in the\n"
    "environment lines are written back.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  nbtree_bench --figures latency,domain --records 16M --repeat 3\n"
    "  nbtree_bench --figures space --pairs 20M,40M,60M,80M,100M\n"
    "  nbtree_bench --figures conflicts,locks --records 2M --operations 2M\n"
    "  nbtree_bench --figures skew --html skew.html --json skew.json";

void add_options(CLI::App& app, Config& config) {
  app.add_option("--figures", config.figures,
                 fmt::format("Which experiments: {}", fmt::join(figure_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--systems,--engines", config.systems, "Systems, of those of perdix bench")
      ->delimiter(',')
      ->capture_default_str();
  add_count(app, "--records", config.records, "Records in an index before it is measured");
  add_count(app, "--operations", config.operations, "Operations of a phase, at most --records");
  add_counts(app, "--pairs", config.pairs, "Sizes at which memory is measured, ascending")
      ->default_str("4M,8M,12M,16M,20M");
  app.add_option("--thetas", config.thetas, "Skews, ascending; 0.99 is YCSB's")
      ->delimiter(',')
      ->capture_default_str();
  add_counts(app, "--writes", config.writes, "Shares of writes, in percent")
      ->default_str("0,20,50,80,100");
  add_counts(app, "--threads", config.threads,
             "Numbers of threads for skew, conflicts, decoupled and locks")
      ->default_str("1,2");
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace
}  // namespace perdix::bench::figures

int main(int argc, char** argv) {
  using namespace perdix::bench;
  figures::set_pmemobj_up(argv);
  CLI::App app(figures::kDescription, "nbtree_bench");
  app.footer(figures::kFooter);
  figures::Config config;
  figures::add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}
