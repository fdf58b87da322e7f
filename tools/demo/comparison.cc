#include "demo/comparison.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ostream.h>

#include "systems/systems.h"
#include "terminal/format.h"
#include "ycsb/driver.h"
#include "ycsb/progress.h"

namespace perdix::demo {
namespace {

constexpr const char* kOurs = "sptree";
constexpr const char* kVolatile = "btree_map";

bool has_system(std::string_view name) {
  return std::ranges::find(bench::systems(), name, &bench::System::name) != bench::systems().end();
}

/// SpTree, and what this build can compare it with.
std::vector<std::string> compared_systems() {
  std::vector<std::string> names = {kOurs};
  for (const char* other : {kVolatile, "lmdb", "rocksdb"})
    if (has_system(other)) names.push_back(other);
  return names;
}

std::string ratio_to(const bench::Results& results, const std::string& other,
                     const char* workload) {
  const bench::Result* ours = results.find(kOurs, workload, 1);
  const bench::Result* theirs = results.find(other, workload, 1);
  return terminal::format_number(ours->operations_per_second() / theirs->operations_per_second());
}

void write_ratios(const bench::Results& results, const std::vector<std::string>& systems) {
  for (const std::string& other : systems) {
    if (other == kOurs) continue;
    fmt::print(std::cout,
               "   beside {:<10} {:>6} times the throughput of load, {:>6} times of reading (c)\n",
               other, ratio_to(results, other, "load"), ratio_to(results, other, "c"));
  }
}

void explain_systems() {
  if (has_system(kVolatile))
    std::cout << "   btree_map is absl::btree_map in DRAM, which survives nothing.\n";
  if (has_system("lmdb") && has_system("rocksdb")) {
    std::cout << "   lmdb and rocksdb run without sync, so that all of these survive the same: the "
                 "end of the process.\n";
  } else {
    std::cout << "   To compare with LMDB and RocksDB too: install liblmdb-dev and librocksdb-dev, "
                 "then make demo.\n";
  }
  std::cout << "   'make bench' measures more, beside more.\n";
}

}  // namespace

bool compare(const std::filesystem::path& directory, std::uint64_t records, std::uint64_t seed,
             terminal::ProgressStyle style) {
  constexpr std::uint64_t kOperationShare = 5;  // a fifth of the records keeps the demo short
  bench::Config config;
  config.systems = compared_systems();
  config.records = records;
  config.operations = std::max<std::uint64_t>(1, records / kOperationShare);
  config.seed = seed;
  config.pool_dir = directory;
  config.on_progress = bench::progress_display(style);
  const bench::Results results = bench::measure(config);
  terminal::show_status(style, "");
  for (const bench::Figure& figure : bench::summaries_of(results)) write_table(std::cout, figure);
  std::cout << '\n';
  write_ratios(results, config.systems);
  explain_systems();
  for (const std::string& problem : results.problems())
    fmt::print(std::cout, "   PROBLEM: {}\n", problem);
  return results.problems().empty();
}

}  // namespace perdix::demo
