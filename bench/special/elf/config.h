// What a run of `perdix-bench special elf` does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/run_options.h"

namespace perdix::bench::points {

struct Config : RunOptions {
  std::vector<std::string> figures = {"methods", "policies", "selectivity"};
  std::vector<std::string> systems = {"scan", "elf", "hybrid", "rtree", "sqlite"};
  std::uint64_t rows = 1'000'000;
  std::uint64_t warm_up = 10'000;  ///< exact matches before any are measured, as in the paper
  std::uint64_t queries = 10'000;  ///< of a phase, at most
  double seconds = 1;              ///< of a phase, about
};

/// The names that `Config::figures` and `Config::systems` may have.
std::vector<std::string> figure_names();
std::vector<std::string> system_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::points
