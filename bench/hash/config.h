// What a run of hash_bench does.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ycsb/config.h"

namespace perdix::bench::hashing {

struct Config {
  std::vector<std::string> figures;  ///< empty: all that the contenders and this build allow
  std::vector<std::string> engines;
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
  std::uint64_t repeat = 1;                            ///< rounds; medians are reported
  std::uint64_t seed = 1;
  std::filesystem::path pool_dir;  ///< empty: chosen
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true

  Config();
};

/// The names that `Config::figures` may have.
std::vector<std::string> figure_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::hashing
