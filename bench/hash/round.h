// The experiments of ElimDa's paper, each for one system at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/figure.h"
#include "experiments/trial.h"
#include "hash/config.h"

namespace perdix::bench::hashing {

/// The most records that an index will ever hold.
std::uint64_t most_records(const Config& config);

/// Carries out experiments once. Each adds the rows of a system to its figure; the metrics of
/// the figure are those that experiment.cc lists.
class Round {
 public:
  Round(const Config& config, Bench& bench) : config_(config), bench_(bench) {}

  /// Exp#1 and Exp#2: each operation alone. Keys of inserts and erases come once each, so for these
  /// there is one distribution.
  void operations(Figure& figure, const System& system);

  /// Exp#3: mixes, keys chosen uniformly, in D the latest.
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
