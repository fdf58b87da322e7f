// tips_bench: the experiments of Tips' paper that need no more than two cores.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "tips/experiment.h"
#include "ycsb/progress.h"

namespace perdix::bench::plugged {
namespace {

constexpr const char* kDescription =
    "The experiments of Tips' paper that need no more than two cores: indexes that it makes\n"
    "durable, the same on the heap, and indexes of perdix.\n\n"
    "  mixes      YCSB A to E, integer and string keys, uniform and zipfian (fig. 4 to 8)\n"
    "  parts      lookups that the cache answers, others, updates and inserts\n"
    "  workers    threads that replay the logs, by mix (fig. 9, F-2)\n"
    "  cache      throughput and hits by size of the cache (fig. 10)\n"
    "  logs       throughput and reclamations by size of the logs (fig. 11)\n"
    "  undo       undo records of an update, and how many are saved (4.3.2, 7.4)\n"
    "  recovery   opening after SIGKILL, by size of the logs (7.7)\n\n"
    "Every answer is compared with the expected one.";

constexpr const char* kFooter =
    "Numbers of records and operations may end in k, M or G. Take an idle machine.\n"
    "The default is 1 M records; the paper has 32 M.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  tips_bench --repeat 3 --json tips.json --html tips.html\n"
    "  tips_bench --figures mixes,parts --systems tips:btree,volatile:btree --records 10M\n"
    "  tips_bench --figures recovery --systems tips:btree --log-bytes 256k,32M";

void add_options(CLI::App& app, Config& config) {
  app.add_option("--figures", config.figures,
                 fmt::format("Which experiments (default: all that the systems allow): {}",
                             fmt::join(figure_names(), ", ")))
      ->delimiter(',');
  app.add_option("--systems,--engines", config.systems, "Systems, of those of perdix bench")
      ->delimiter(',')
      ->capture_default_str();
  add_count(app, "--records", config.records, "Records in an index before it is measured");
  add_count(app, "--operations", config.operations, "Operations of a phase");
  add_counts(app, "--threads", config.threads, "Numbers of threads; each is a separate run")
      ->default_str("1,2");
  add_counts(app, "--cached", config.cached, "Sizes of the cache, in percent of the records")
      ->default_str("0,10,25,50,75,100");
  app.add_option("--log-bytes", config.log_bytes,
                 "Sizes of a log: powers of two, 256k to 256M, k and M being binary")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->default_str("256k,1M,4M,32M");
  add_count(app, "--most-workers", config.most_workers,
            "Threads that may replay, where their number is measured");
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace
}  // namespace perdix::bench::plugged

int main(int argc, char** argv) {
  using namespace perdix::bench;
  CLI::App app(plugged::kDescription, "tips_bench");
  app.footer(plugged::kFooter);
  plugged::Config config;
  plugged::add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}
