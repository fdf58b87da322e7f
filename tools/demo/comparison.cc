#include "demo/comparison.h"

#include <algorithm>
#include <iostream>

#include <fmt/ostream.h>

#include "terminal/format.h"
#include "ycsb/driver.h"
#include "ycsb/progress.h"

namespace perdix::demo {
namespace {

constexpr const char* kOurs = "sptree";

std::string ratio_to(const bench::Report& report, const char* other, const char* workload) {
  const bench::Result* ours = report.find(kOurs, workload, 1);
  const bench::Result* theirs = report.find(other, workload, 1);
  return terminal::format_number(ours->operations_per_second() / theirs->operations_per_second());
}

void write_ratios(const bench::Report& report) {
  for (const char* other : {"lmdb", "rocksdb", "btree_map"}) {
    fmt::print(std::cout,
               "   beside {:<10} {:>6} times the throughput of load, {:>6} times of reading (c)\n",
               other, ratio_to(report, other, "load"), ratio_to(report, other, "c"));
  }
}

}  // namespace

bool compare(const std::filesystem::path& directory, std::uint64_t records, std::uint64_t seed,
             terminal::ProgressStyle style) {
  constexpr std::uint64_t kOperationShare = 5;  // a fifth of the records keeps the demo short
  bench::Config config;
  config.records = records;
  config.operations = std::max<std::uint64_t>(1, records / kOperationShare);
  config.data.seed = seed;
  config.pool_dir = directory;
  config.on_progress = bench::progress_display(style);
  const bench::Report report = bench::run(config);
  terminal::show_status(style, "");
  bench::write_summary(std::cout, report);
  std::cout << '\n';
  write_ratios(report);
  std::cout << "   btree_map is absl::btree_map in DRAM, which survives nothing; lmdb and rocksdb "
               "run without sync, so that\n"
               "   all three stores survive the same: the end of the process. 'perdix bench' "
               "measures more.\n";
  for (const std::string& problem : report.problems())
    fmt::print(std::cout, "   PROBLEM: {}\n", problem);
  return report.problems().empty();
}

}  // namespace perdix::demo
