// What a run of `perdix-bench special nbtree` does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <perdix/pool.h>

#include "common/run_options.h"

namespace perdix::bench::figures {

struct Config : RunOptions {
  std::vector<std::string> figures = {"skew", "allocator"};
  std::vector<std::string> systems = {"nbtree", "sptree", "fastfair", "btree_map"};
  std::uint64_t records = 10'000'000;    ///< in an index before it is measured
  std::uint64_t operations = 2'000'000;  ///< of a phase, all threads together
  std::vector<double> thetas = {0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.1, 1.2};
  std::vector<std::uint64_t> writes = {0, 20, 50, 80, 100};  ///< percent
  std::vector<std::uint64_t> threads = {1, 2};               ///< for skew
};

/// The names that `Config::figures` may have.
std::vector<std::string> figure_names();

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::figures
