// What a run of hash_bench does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run.h"

namespace perdix::bench::hashing {

struct Config : ExperimentOptions {
  std::uint64_t start = 60'000;        ///< records in an index before it is measured
  std::uint64_t records = 1'000'000;   ///< added while it is measured
  std::uint64_t operations = 500'000;  ///< of a phase that adds none, all threads together
  /// Sizes at which memory and restarts are measured, ascending.
  std::vector<std::uint64_t> pairs = {1'000'000, 2'000'000, 4'000'000};
  std::vector<std::uint64_t> value_sizes = {16, 32, 64, 128, 256};
  std::vector<std::uint64_t> logs = {1024, 2048, 4096, 8192, 16384};
  std::vector<std::uint64_t> d_buckets = {16, 32};  ///< pairs of a bucket in DRAM
  std::vector<std::uint64_t> p_buckets = {64, 128, 256, 512, 1024};
  std::vector<std::uint64_t> threads = {1, 2};
  std::uint64_t samples = 20;  ///< of the load factor
  std::uint64_t media_unit = 256;
  std::uint64_t cache_bytes = std::uint64_t{4} << 20;  ///< of the traffic meter's model

  Config();
};

/// The names that `Config::figures` may have.
std::vector<std::string> figure_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::hashing
