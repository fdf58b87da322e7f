// spot_on_bench: the experiments of the SpTree paper's section 3 (Zhao et al., ICPE 2024).
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "spot_on/experiment.h"
#include "ycsb/progress.h"

namespace perdix::bench::spot_on {
namespace {

constexpr const char* kDescription =
    "What write buffers (b), merges out of place (o) and caches in DRAM (c) do for Cceh, FastFair\n"
    "and SkipList: the experiments of section 3 of SpTree's paper (Zhao et al., ICPE 2024).\n\n"
    "  buffers     media bytes of an insert without and with write buffers (fig. 2)\n"
    "  traffic     media bytes, flushes and fences of an insert, by technique (fig. 3)\n"
    "  throughput  inserts, by technique and number of threads (fig. 3)\n"
    "  latency     percentiles and distribution of inserts and reads, by technique (fig. 4)\n"
    "  budgets     inserts, with DRAM for some of the buffers, for none and for all\n"
    "  budget_traffic  media bytes of these inserts\n\n"
    "An instrumented build makes those of media bytes, every other build the rest. What real "
    "DIMMs\n"
    "did stands beside ours. Every answer is compared with the expected one.";

constexpr const char* kFooter =
    "Numbers of records and reads may end in k, M or G. Take an idle machine for times.\n"
    "The default is 1 M records; the paper has 120 M.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  spot_on_bench --json spot_on.json --html spot_on.html\n"
    "  spot_on_bench --figures throughput --systems cceh,cceh+b --records 10M --repeat 3\n"
    "  spot_on_bench --figures traffic --records 2M --threads 1\n"
    "  spot_on_bench --figures budgets --systems cceh+b,sptree+buffers --shares 10,50";

void add_options(CLI::App& app, Config& config) {
  app.add_option(
         "--figures", config.figures,
         fmt::format("Which experiments (default: all that the build and the systems allow): {}",
                     fmt::join(figure_names(), ", ")))
      ->delimiter(',');
  app.add_option("--systems,--engines", config.systems, "Systems, of those of perdix bench")
      ->delimiter(',')
      ->capture_default_str();
  add_count(app, "--records", config.records, "Records that are inserted into an empty index");
  add_count(app, "--reads", config.reads, "Reads after the inserts, for latency");
  add_counts(app, "--threads", config.threads, "Numbers of threads; each is a separate run")
      ->default_str("1,2");
  app.add_option("--dram-budget", config.dram_budget,
                 "Bytes of DRAM for buffers and copies (default: as much as they need)")
      ->transform(CLI::AsSizeValue(false));
  add_counts(app, "--shares", config.shares,
             "Budgets for figures of budgets, in percent of what buffers for all take")
      ->default_str("10,25,50,75");
  app.add_option("--media-unit", config.media_unit, "Traffic model: bytes in a media access")
      ->check(CLI::IsMember({64, 256, 4096}))
      ->capture_default_str();
  app.add_option("--cache-bytes", config.cache_bytes,
                 "Traffic model: size of the CPU cache (default: the paper's, as much smaller as "
                 "there are fewer records)")
      ->transform(CLI::AsSizeValue(false));
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace
}  // namespace perdix::bench::spot_on

int main(int argc, char** argv) {
  using namespace perdix::bench;
  CLI::App app(spot_on::kDescription, "spot_on_bench");
  app.footer(spot_on::kFooter);
  spot_on::Config config;
  spot_on::add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}
