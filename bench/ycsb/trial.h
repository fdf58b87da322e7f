// One system that is open in a new directory and executes phases.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/place.h"
#include "ycsb/crasher.h"
#include "ycsb/phase.h"
#include "ycsb/plan.h"
#include "ycsb/warm_memory.h"

namespace perdix::bench {

/// What the trials of a run share.
struct Bench {
  std::filesystem::path parent;  ///< of their directories
  Crasher& crasher;
  Planner planner;
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  /// Called now and then by a phase.
  std::function<void(const System&, const Workload&, unsigned threads, std::uint64_t done,
                     std::uint64_t total)>
      on_progress;
  std::uint64_t wrong = 0;
};

class Trial {
 public:
  /// Touches memory, opens the system with `setup` (but the trial's directory and seed), and loads
  /// `load` records. A meter counts from the first phase on.
  Trial(Bench& bench, const System& system, Setup setup, std::uint64_t load,
        Meter* meter = nullptr);

  /// Executes the workload with the threads of the setup. Throws Cancelled after `bench.stop`.
  PhaseResult run(const Workload& workload, Distribution distribution, std::uint64_t operations);

  /// Like run(), with one thread for each trial, which has that trial's index. The indexes were
  /// loaded alike, and the workload adds and erases nothing.
  static PhaseResult run_apart(std::span<const std::unique_ptr<Trial>> trials,
                               const Workload& workload, Distribution distribution,
                               std::uint64_t operations);

  std::uint64_t records() const { return records_.count(); }

  /// Returns the sizes that the system reports. For a size that it does not report, returns the
  /// growth of the process's anonymous memory, or of the system's files.
  OwnFootprint footprint() const;

 private:
  PhaseResult run_on(std::span<Store* const> stores, unsigned threads, const Workload& workload,
                     Distribution distribution, std::uint64_t operations);
  std::uint64_t resident() const;

  Bench& bench_;
  const System& system_;
  const unsigned threads_;
  Meter* const meter_;
  ScratchDirectory directory_;
  WarmMemory warm_;
  WarmMemoryKeeper keeper_;
  std::uint64_t resident_before_;
  std::unique_ptr<Store> store_;
  Records records_;
};

}  // namespace perdix::bench
