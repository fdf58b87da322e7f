// One system that is open in a new directory and executes phases. All benchmarks that run workloads
// measure with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "common/place.h"
#include "common/run_options.h"
#include "ycsb/crasher.h"
#include "ycsb/phase.h"
#include "ycsb/plan.h"
#include "ycsb/warm_memory.h"

namespace perdix::bench {

/// What the trials of a run share.
struct Bench {
  const RunOptions& options;
  std::filesystem::path parent;  ///< of their directories
  Planner planner;
  Crasher* crasher = nullptr;       ///< for reopen_after_kill()
  std::uint32_t sample_every = 32;  ///< of operations without syncs; of others each is timed
  std::optional<std::uint64_t> warm_memory = {};  ///< for each system; by default enough
  std::uint64_t phase = 0, phases = 0;            ///< of Progress
  std::uint64_t wrong = 0;                        ///< answers so far, and records lost

  void show(const System& system, const Workload& workload, unsigned threads, std::uint64_t done,
            std::uint64_t total) const;
};

/// Sizes after a phase.
struct Footprint {
  OwnFootprint own;            ///< as the system reports
  std::uint64_t resident = 0;  ///< growth of the process's anonymous memory since it was opened
  std::uint64_t files = 0;     ///< allocated bytes of its files
  std::uint64_t records = 0;   ///< pairs in it
};

class Trial {
 public:
  /// Touches memory, opens the system with `setup` (but the trial's directory and the run's seed),
  /// and loads `load` records. A meter counts from the first phase on.
  Trial(Bench& bench, const System& system, Setup setup, std::uint64_t load,
        Meter* meter = nullptr);

  /// Executes the workload with the threads of the setup. Throws Cancelled.
  PhaseResult run(const Workload& workload, Distribution distribution, std::uint64_t operations);

  /// Like run(), with one thread for each trial, which has that trial's index. The indexes were
  /// loaded alike, and the workload adds and erases nothing.
  static PhaseResult run_apart(std::span<const std::unique_ptr<Trial>> trials,
                               const Workload& workload, Distribution distribution,
                               std::uint64_t operations);

  std::uint64_t records() const { return records_.count(); }

  Footprint footprint() const;

  /// Returns the sizes that the system reports. For a size that it does not report, returns the
  /// growth of the process's anonymous memory, or of the system's files.
  OwnFootprint known_footprint() const;

 private:
  PhaseResult run_on(std::span<Store* const> stores, unsigned threads, const Workload& workload,
                     Distribution distribution, std::uint64_t operations);
  std::uint64_t resident() const;

  Bench& bench_;
  const System& system_;
  const unsigned threads_;
  const std::uint32_t sample_every_;  // each where a sync is a part of it: the clock costs little
  Meter* const meter_;
  ScratchDirectory directory_;
  WarmMemory warm_;
  WarmMemoryKeeper keeper_;
  std::uint64_t resident_before_;
  std::unique_ptr<Store> store_;
  Records records_;
};

/// Opening after SIGKILL.
struct Reopened {
  double open_seconds = 0;
  double first_answer_seconds = 0;  ///< from before opening to the answer of the first get
  double resumed_seconds = 0;       ///< from before opening until all that lies in DRAM is back
  std::uint64_t records = 0;
  std::uint64_t lost = 0;  ///< records that had been acknowledged and aren't there
};

/// Loads `records` records in a process that is killed with SIGKILL, opens what it has left with
/// the same setup, and looks all records up.
Reopened reopen_after_kill(Bench& bench, const System& system, Setup setup, std::uint64_t records);

}  // namespace perdix::bench
