// What a run of spot_on_bench does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run.h"

namespace perdix::bench::spot_on {

struct Config : ExperimentOptions {
  std::uint64_t records = 1'000'000;  ///< inserted into an empty index
  std::uint64_t reads = 1'000'000;    ///< after them, where latencies are measured
  std::vector<std::uint64_t> threads = {1, 2};
  std::uint64_t dram_budget = ~std::uint64_t{0};  ///< for buffers and copies in DRAM
  /// Parts of what buffers for all leaves take, in percent, for the figures of budgets.
  std::vector<std::uint64_t> shares = {10, 25, 50, 75};
  std::uint64_t media_unit = 256;
  /// Of the traffic meter's model; 0: as much smaller than the testbed's as there are fewer
  /// records, so that the same parts of an index fit it.
  std::uint64_t cache_bytes = 0;

  Config();
};

/// The names that `Config::figures` may have.
std::vector<std::string> figure_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::spot_on
