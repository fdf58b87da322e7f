// The experiments of the ElimDa paper, each for one system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/figure.h"
#include "experiments/trial.h"
#include "hash/config.h"

namespace perdix::bench::hashing {

/// Returns the maximum number of records in an index.
std::uint64_t most_records(const Config& config);

/// Runs experiments once. Each adds the rows of a system to its figure. experiment.cc lists the
/// metrics of the figures.
class Round {
 public:
  Round(const Config& config, Bench& bench) : config_(config), bench_(bench) {}

  /// Exp#1 and Exp#2: each operation alone. Inserts and erases use each key once, so they have one
  /// distribution only.
  void operations(Figure& figure, const System& system);

  /// Exp#3: mixes with uniform keys; D has the latest keys.
  void mixes(Figure& figure, const System& system);

  /// Exp#4: latencies of each operation, one thread.
  void latency(Figure& figure, const System& system);

  /// Exp#5: inserts on caches that survive power failures, and with every line written back.
  void domain(Figure& figure, const System& system);

  /// Exp#6, and figures 3 and 4: what an operation reads and writes, by the meter.
  void traffic(Figure& figure, const System& system);

  /// Exp#7: memory of a pair, and how much of it is DRAM.
  void space(Figure& figure, const System& system);

  /// Exp#8: values that are byte strings.
  void values(Figure& figure, const System& system);

  /// Exp#9: how full the table is, while pairs are added.
  void load_factor(Figure& figure, const System& system);

  /// Exp#10: opening after SIGKILL.
  void recovery(Figure& figure, const System& system);

  /// Exp#11: throughput of inserts by the number of collecting logs.
  void logs(Figure& figure, const System& system);

  /// Exp#12: inserts and lookups by the size of buckets.
  void buckets(Figure& figure, const System& system);

 private:
  Setup setup_for(std::uint64_t threads) const;

  void add_lookups(Figure& figure, std::uint64_t threads, Trial& trial, const System& system,
                   Distribution distribution);

  const Config& config_;
  Bench& bench_;
};

}  // namespace perdix::bench::hashing
