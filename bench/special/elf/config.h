// What a run of `perdix-bench special elf` does.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ycsb/config.h"

namespace perdix::bench::points {

struct Config {
  std::vector<std::string> figures = {"methods", "policies", "selectivity"};
  std::vector<std::string> systems = {"scan", "elf", "hybrid", "rtree", "sqlite"};
  std::uint64_t rows = 1'000'000;
  std::uint64_t warm_up = 10'000;  ///< exact matches before any are measured, as in the paper
  std::uint64_t queries = 10'000;  ///< of a phase, at most
  double seconds = 1;              ///< of a phase, about
  std::uint64_t repeat = 1;        ///< rounds; medians are reported
  std::uint64_t seed = 1;
  std::filesystem::path pool_dir;  ///< empty: chosen
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true
};

/// The names that `Config::figures` and `Config::systems` may have.
std::vector<std::string> figure_names();
std::vector<std::string> system_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::points
