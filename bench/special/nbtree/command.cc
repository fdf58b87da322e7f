#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "special/nbtree/experiment.h"
#include "special/pmemobj_environment.h"
#include "special/special.h"
#include "ycsb/progress.h"

namespace perdix::bench {
namespace {

constexpr const char* kDescription =
    "Those experiments of NbTree's paper (Zhang et al., IEEE TPDS 2024) that `perdix-bench figure\n"
    "nbtree` does not have.\n\n"
    "  skew      throughput by skew and share of writes, one and two threads (figure 11);\n"
    "            beside them two threads that share nothing\n"
    "  allocator NbTree's inserts with Calloc, libpmemobj and a naive allocator (figure 15)\n\n"
    "Every answer is compared with the expected one.";

constexpr const char* kFooter =
    "Numbers of records may end in k, M or G. Take an idle machine.\n"
    "\"allocator\" is for caches that survive power failures; with PMEM_NO_FLUSH=0 in the\n"
    "environment lines are written back.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  perdix-bench special nbtree --figures skew --html skew.html --json skew.json\n"
    "  perdix-bench special nbtree --figures allocator --repeat 3";

void add_options(CLI::App& app, figures::Config& config) {
  app.add_option("--figures", config.figures,
                 fmt::format("Which experiments: {}", fmt::join(figures::figure_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--systems,--engines", config.systems, "Systems of skew, of those of perdix bench")
      ->delimiter(',')
      ->capture_default_str();
  add_count(app, "--records", config.records, "Records in an index before it is measured");
  add_count(app, "--operations", config.operations, "Operations of a phase");
  app.add_option("--thetas", config.thetas, "Skews, ascending; 0.99 is YCSB's")
      ->delimiter(',')
      ->capture_default_str();
  add_counts(app, "--writes", config.writes, "Shares of writes, in percent")
      ->default_str("0,20,50,80,100");
  add_counts(app, "--threads", config.threads, "Numbers of threads")->default_str("1,2");
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace

int run_nbtree(int argc, char** argv) {
  set_pmemobj_up(argc, argv);
  CLI::App app(kDescription, "perdix-bench special nbtree");
  app.footer(kFooter);
  figures::Config config;
  add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}

}  // namespace perdix::bench
