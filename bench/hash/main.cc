// hash_bench: the experiments of ElimDa's paper that need no more than two cores.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "hash/experiment.h"
#include "ycsb/progress.h"

namespace perdix::bench::hashing {
namespace {

constexpr const char* kDescription =
    "The experiments of ElimDa's paper that need no more than two cores, over hash tables in\n"
    "DRAM and in files, and indexes of perdix.\n\n"
    "  operations   inserts, lookups, updates and erases by themselves (Exp#1, Exp#2)\n"
    "  mixes        YCSB A, B, D, F, and half reads, half inserts (Exp#3)\n"
    "  latency      mean and percentiles, one thread (Exp#4)\n"
    "  domain       inserts with eADR, and with ADR, where lines are written back (Exp#5)\n"
    "  traffic      what operations read and write, in an instrumented build (Exp#6, fig. 3, 4)\n"
    "  space        DRAM and stored bytes of a pair (Exp#7)\n"
    "  values       inserts by size of the value (Exp#8)\n"
    "  load_factor  while pairs are added (Exp#9)\n"
    "  recovery     opening after SIGKILL (Exp#10)\n"
    "  logs         inserts by number of collecting logs (Exp#11)\n"
    "  buckets      inserts and lookups by size of buckets (Exp#12)\n\n"
    "Every answer is compared with the expected one.";

constexpr const char* kFooter =
    "Numbers of records and pairs may end in k, M or G. Take an idle machine.\n"
    "The default is 1 M records; the paper has 50 M.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  hash_bench --repeat 3 --json hash.json --html hash.html\n"
    "  hash_bench --figures operations,latency --systems elimda,tbb --records 50M --operations 2M\n"
    "  hash_bench --figures recovery --pairs 1M,10M";

void add_options(CLI::App& app, Config& config) {
  app.add_option("--figures", config.figures,
                 fmt::format("Which experiments (default: all that the build and the systems "
                             "allow): {}",
                             fmt::join(figure_names(), ", ")))
      ->delimiter(',');
  app.add_option("--systems,--engines", config.systems, "Systems, of those of perdix bench")
      ->delimiter(',')
      ->capture_default_str();
  add_count(app, "--start", config.start, "Records in an index before it is measured");
  add_count(app, "--records", config.records, "Records that are added while it is measured");
  add_count(app, "--operations", config.operations, "Operations of a phase that adds none");
  add_counts(app, "--pairs", config.pairs, "Sizes for space and recovery, ascending")
      ->default_str("1M,2M,4M");
  add_counts(app, "--value-sizes", config.value_sizes, "Bytes of values")
      ->default_str("16,32,64,128,256");
  add_counts(app, "--logs", config.logs, "Numbers of collecting logs, for systems with some")
      ->default_str("1024,2048,4096,8192,16384");
  add_counts(app, "--d-buckets", config.d_buckets, "Pairs of a bucket in DRAM, powers of two")
      ->default_str("16,32");
  add_counts(app, "--p-buckets", config.p_buckets, "Pairs of a bucket in the pool, powers of two")
      ->default_str("64,128,256,512,1024");
  add_counts(app, "--threads", config.threads, "Numbers of threads; each is a separate run")
      ->default_str("1,2");
  add_count(app, "--samples", config.samples, "Of the load factor");
  app.add_option("--media-unit", config.media_unit, "Traffic model: bytes in a media access")
      ->check(CLI::IsMember({64, 256, 4096}))
      ->capture_default_str();
  app.add_option("--cache-bytes", config.cache_bytes, "Traffic model: size of the CPU cache")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace
}  // namespace perdix::bench::hashing

int main(int argc, char** argv) {
  using namespace perdix::bench;
  CLI::App app(hashing::kDescription, "hash_bench");
  app.footer(hashing::kFooter);
  hashing::Config config;
  hashing::add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}
