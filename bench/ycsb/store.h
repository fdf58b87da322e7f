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
  std::uint64_t max_records = 0;                ///< maximum number of records in it during the run
  unsigned threads = 1;                         ///< threads that will use it concurrently
  Durability durability = Durability::process;  ///< process or power
  DomainChoice domain = DomainChoice::detect;
  std::uint64_t dram_budget = 0;  ///< of systems with write buffers
  std::uint64_t pool_size = 0;    ///< PoolOptions::initial_size of perdix; 0: the smallest
  std::map<std::string, std::uint64_t, std::less<>>
      parameters;  ///< of System::parameters, which then differ from the defaults
  std::vector<const tips::Plugin*> plugins = {};  ///< PoolOptions::plugins of perdix

  /// Whether a write must be on the medium when the call returns.
  bool synced() const noexcept { return durability == Durability::power; }

  /// The number of records that a system in DRAM may reserve space for at the start. It is 0 unless
  /// pools, too, start with the size that they will need.
  std::uint64_t reserved_records() const noexcept { return pool_size == 0 ? 0 : max_records; }

  /// A parameter, or `otherwise` where it was not given.
  std::uint64_t parameter(std::string_view name, std::uint64_t otherwise) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? otherwise : found->second;
  }
};

/// The size that a system reports, as far as it can.
struct OwnFootprint {
  std::optional<std::uint64_t> dram_bytes;
  std::optional<std::uint64_t> stored_bytes;    ///< on persistent memory or disk
  std::optional<double> load_factor = {};       ///< of a hash table: pairs for each place for one
  std::optional<TipsStats> tips = {};           ///< of an index of Tips
  std::optional<std::uint64_t> conflicts = {};  ///< of a form of NbTree that counts them
};

/// One thread's part in a phase.
struct Share {
  std::span<const Op> ops;
  std::uint64_t seed = 0;
  std::uint32_t sample_every = 32;                 ///< one in this many operations is timed
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

  /// Executes a share on the calling thread. Calls `ready` when everything is prepared, immediately
  /// before the clock starts.
  virtual ShareResult run(const Share& share, const std::function<void()>& ready) = 0;

  virtual OwnFootprint footprint() const = 0;

  /// Restores the rest of what the system keeps in DRAM, if opening has postponed that.
  virtual void resume() = 0;
};

/// The optional calls that a system has.
struct Calls {
  bool update = false;        ///< of a value, atomically
  bool scan = false;          ///< it keeps its keys in order
  bool insert_ahead = false;  ///< an insert that gives no answer
};

inline constexpr unsigned kAnyThreads = std::numeric_limits<unsigned>::max();

/// A system: its name and how to open it.
struct System {
  std::string name;
  std::string summary;
  bool persistent = false;  ///< keeps its records when the process ends
  std::unique_ptr<Store> (*open)(const Setup& setup) = nullptr;
  std::string (*settings)(const Setup& setup) =
      nullptr;  ///< options and flags that it runs with, in words
  Calls calls = {};
  unsigned max_threads = kAnyThreads;        ///< that may use it concurrently
  std::vector<std::string> parameters = {};  ///< of Setup::parameters that it takes
  bool tells_load_factor = false;            ///< in OwnFootprint
};

/// Says in a sentence why a system cannot execute a workload with `threads` threads; empty if it
/// can.
std::optional<std::string> why_not(const System& system, const Workload& workload,
                                   unsigned threads);

}  // namespace perdix::bench
