// What the driver sees of a system: an open store that executes a thread's share of a plan.
//
// The call is per plan, not per operation: inside, ycsb/worker.h is compiled for the system's
// own types.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/pool.h>

#include "util/histogram.h"
#include "ycsb/meter.h"
#include "ycsb/shape.h"
#include "ycsb/workload.h"

namespace perdix::bench {

/// What a system is opened with.
struct Setup {
  Dataset data;
  std::filesystem::path directory;              ///< exists; what lies in it belongs to this system
  std::uint64_t max_records = 0;                ///< most records that the run will ever put in
  unsigned threads = 1;                         ///< threads that will use it at once
  Durability durability = Durability::process;  ///< process or power
  DomainChoice domain = DomainChoice::detect;
  std::uint64_t dram_budget = 0;  ///< IndexOptions::dram_budget of systems with write buffers
  std::uint64_t pool_size = 0;    ///< PoolOptions::initial_size of perdix; 0: the smallest
  std::map<std::string, std::uint64_t, std::less<>>
      parameters;  ///< of System::parameters, which then differ from the defaults

  /// Whether a write must be on the medium when the call returns.
  bool synced() const noexcept { return durability == Durability::power; }

  /// How many records a system in DRAM may make room for before the first one comes: none,
  /// unless pools, too, begin with the size that they will need.
  std::uint64_t reserved_records() const noexcept { return pool_size == 0 ? 0 : max_records; }

  /// A parameter, or `otherwise` where it was not given.
  std::uint64_t parameter(std::string_view name, std::uint64_t otherwise) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? otherwise : found->second;
  }
};

/// What a system says of its own size, where it can.
struct OwnFootprint {
  std::optional<std::uint64_t> dram_bytes;
  std::optional<std::uint64_t> stored_bytes;  ///< on persistent memory or disk
  std::optional<double> load_factor = {};     ///< of a hash table: pairs for each place for one
  std::optional<TipsStats> tips = {};         ///< of an index of Tips
};

/// One thread's part in a phase.
struct Share {
  std::span<const Op> ops;
  std::uint64_t seed = 0;
  std::uint32_t sample_every = 32;                 ///< one operation in so many is timed
  const std::atomic<bool>* stop = nullptr;         ///< ends the share early once true; may be null
  std::atomic<std::uint64_t>* progress = nullptr;  ///< operations done, now and then; may be null
  Meter* meter = nullptr;                          ///< may be null
};

using Clock = std::chrono::steady_clock;

struct ShareResult {
  Clock::time_point begin;
  Clock::time_point end;
  std::uint64_t done = 0;
  std::uint64_t wrong = 0;  ///< operations whose answer was not the expected one
  std::uint64_t checksum =
      0;  ///< of all that was read: the same for all systems in a run of one thread
  detail::util::Histogram latency;  ///< nanoseconds, of the sampled operations
};

class Store {
 public:
  virtual ~Store() = default;

  /// Executes a share on the calling thread. `ready` is called when everything is prepared, just
  /// before the clock starts.
  virtual ShareResult run(const Share& share, const std::function<void()>& ready) = 0;

  virtual OwnFootprint footprint() const = 0;

  /// Brings back what the system keeps in DRAM, as far as opening has left that for later.
  virtual void resume() = 0;
};

/// Which calls a system has besides those that all have.
struct Calls {
  bool update = false;        ///< of a value, atomically
  bool scan = false;          ///< it keeps its keys in order
  bool insert_ahead = false;  ///< an insert that gives no answer
};

inline constexpr unsigned kAnyThreads = std::numeric_limits<unsigned>::max();

/// A system: how it is called, how it is opened.
struct System {
  std::string name;
  std::string summary;
  bool persistent = false;  ///< keeps its records when the process ends
  std::unique_ptr<Store> (*open)(const Setup& setup) = nullptr;
  std::string (*settings)(const Setup& setup) =
      nullptr;  ///< options and flags that it runs with, in words
  Calls calls = {};
  unsigned most_threads = kAnyThreads;       ///< that may use it at once
  std::vector<std::string> parameters = {};  ///< of Setup::parameters that it takes
  bool tells_load_factor = false;            ///< in OwnFootprint
};

/// Why a system can't execute a workload with so many threads, as a sentence; nothing if it can.
std::optional<std::string> why_not(const System& system, const Workload& workload,
                                   unsigned threads);

}  // namespace perdix::bench
