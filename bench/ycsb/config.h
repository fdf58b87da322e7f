// What a run of the benchmark does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <perdix/pool.h>

#include "common/run_options.h"
#include "ycsb/meter.h"
#include "ycsb/shape.h"
#include "ycsb/workload.h"

namespace perdix::bench {

struct Config : RunOptions {
  std::vector<std::string> systems = {"sptree", "btree_map", "lmdb", "rocksdb"};
  std::string baseline = "btree_map";  ///< ratios are to this system, if it takes part
  std::vector<std::string> workloads = {"load", "a", "b", "c", "d", "e", "f"};
  std::optional<Distribution> distribution;  ///< instead of each workload's own
  std::vector<unsigned> threads = {1};
  std::uint64_t records = 1'000'000;
  std::uint64_t operations = 1'000'000;  ///< per phase, all threads together
  Dataset data;
  Durability durability = Durability::automatic;
  DomainChoice domain = DomainChoice::detect;
  std::uint64_t dram_budget = ~std::uint64_t{0};  ///< for systems with write buffers
  std::uint64_t pool_size = 0;                    ///< that pools begin with; 0: the smallest
  std::optional<std::uint64_t> warm_memory;  ///< for each system (warm_memory.h); by default enough
  std::uint32_t sample_every = 32;           ///< one in this many operations is timed
  Meter* meter = nullptr;                    ///< counts more than time, if there is one
};

}  // namespace perdix::bench
