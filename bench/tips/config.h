// What a run of tips_bench does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run.h"

namespace perdix::bench::plugged {

struct Config : ExperimentOptions {
  std::uint64_t records = 1'000'000;     ///< in an index before it is measured
  std::uint64_t operations = 1'000'000;  ///< of a phase, all threads together
  std::vector<std::uint64_t> threads = {1, 2};
  std::vector<std::uint64_t> cached = {0, 10, 25, 50, 75, 100};  ///< percent of the pairs
  /// Of an operational log, and of the undo log's records.
  std::vector<std::uint64_t> log_bytes = {std::uint64_t{256} << 10, std::uint64_t{1} << 20,
                                          std::uint64_t{4} << 20, std::uint64_t{32} << 20};
  std::uint64_t most_workers = 8;  ///< where their number is measured

  Config();
};

/// The names that `Config::figures` may have.
std::vector<std::string> figure_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::plugged
