#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "special/elf/experiment.h"
#include "special/special.h"
#include "ycsb/progress.h"

namespace perdix::bench {
namespace {

constexpr const char* kDescription =
    "The experiments of the paper on selective caching in Elf (Jibril et al., HardBD & Active\n"
    "2020): a table of ten dimensions with uniform values from 0 to 100, one thread.\n\n"
    "  methods      building, exact, range and partial matches (figure 3), beside a columnar\n"
    "               scan, boost::geometry's R-tree, and SQLite's R*Tree\n"
    "  policies     the queries with each caching policy (figures 4a to 4c)\n"
    "  selectivity  exact matches of rows among a part of the table (figure 5)\n\n"
    "The first answers of each phase are compared with those of the scan.";

constexpr const char* kFooter =
    "Numbers of rows and queries may end in k, M or G. Take an idle machine. An instrumented\n"
    "build also counts the lines of persistent memory that queries read, and shows the time\n"
    "that table I of the paper gives for them: 175 ns each, and 80 ns for one in DRAM. Its\n"
    "other times mean nothing.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  perdix-bench special elf --rows 10M --systems scan,elf,rtree --repeat 3\n"
    "  perdix-bench special elf --figures policies --html policies.html --json policies.json";

void add_options(CLI::App& app, points::Config& config) {
  app.add_option("--figures", config.figures,
                 fmt::format("Which experiments: {}", fmt::join(points::figure_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--systems,--contenders", config.systems,
                 fmt::format("For methods: {}; ratios are to scan, if it comes first",
                             fmt::join(points::system_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  add_count(app, "--rows", config.rows, "Rows of the table");
  add_count(app, "--warm-up", config.warm_up, "Exact matches before any are measured");
  add_count(app, "--queries", config.queries, "Different queries of a phase");
  app.add_option("--seconds", config.seconds, "How long a phase is, at least")
      ->capture_default_str();
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of rows and queries");
}

}  // namespace

int run_elf(int argc, char** argv) {
  CLI::App app(kDescription, "perdix-bench special elf");
  app.footer(kFooter);
  points::Config config;
  add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}

}  // namespace perdix::bench
