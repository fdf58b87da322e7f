// What a run of the benchmark does.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <perdix/pool.h>

#include "ycsb/meter.h"
#include "ycsb/shape.h"
#include "ycsb/workload.h"

namespace perdix::bench {

/// Where a run is, for a progress display.
struct Progress {
  std::string_view system;
  std::string_view workload;
  unsigned threads = 1;
  std::uint64_t done = 0;  ///< operations of this phase
  std::uint64_t total = 0;
  std::uint64_t phase = 0;   ///< phases finished in the whole run
  std::uint64_t phases = 0;  ///< 0: unknown
};

struct Config {
  std::vector<std::string> systems = {"sptree", "btree_map", "lmdb", "rocksdb"};
  std::string baseline = "btree_map";  ///< ratios are to this system, if it takes part
  std::vector<std::string> workloads = {"load", "a", "b", "c", "d", "e", "f"};
  std::optional<Distribution> distribution;  ///< instead of each workload's own
  std::vector<unsigned> threads = {1};
  std::uint64_t records = 1'000'000;
  std::uint64_t operations = 1'000'000;  ///< per phase, all threads together
  Dataset data;
  std::filesystem::path pool_dir;  ///< parent of the run's files; empty: see default_parent()
  Durability durability = Durability::automatic;
  DomainChoice domain = DomainChoice::detect;
  std::uint64_t dram_budget = ~std::uint64_t{0};  ///< for systems with write buffers
  std::uint64_t pool_size = 0;                    ///< that pools begin with; 0: the smallest
  std::optional<std::uint64_t> warm_memory;  ///< for each system (warm_memory.h); by default enough
  unsigned repeat = 1;                       ///< rounds; in each, all systems take their turn
  std::uint32_t sample_every = 32;           ///< one in this many operations is timed

  Meter* meter = nullptr;                            ///< counts more than time, if there is one
  std::function<void(const Progress&)> on_progress;  ///< called about ten times a second
  const std::atomic<bool>* stop =
      nullptr;  ///< the run ends with Cancelled soon after it becomes true
};

/// Thrown by run() after `stop`.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "the benchmark was interrupted"; }
};

}  // namespace perdix::bench
