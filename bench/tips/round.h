// The experiments of the Tips paper, each for one system.
#pragma once

#include <cstdint>

#include <perdix/types.h>

#include "common/figure.h"
#include "experiments/trial.h"
#include "tips/config.h"

namespace perdix::bench::plugged {

/// Returns the maximum number of records in an index.
std::uint64_t most_records(const Config& config);

/// Runs experiments once. Each adds the rows of a system to its figure. experiment.cc lists the
/// metrics of the figures.
class Round {
 public:
  Round(const Config& config, Bench& bench) : config_(config), bench_(bench) {}

  /// Figures 4 to 8: YCSB's mixes, integers and strings, uniform and zipfian.
  void mixes(Figure& figure, const System& system);

  /// What the cache costs and saves: lookups that it answers, other lookups, writes, and scans.
  void parts(Figure& figure, const System& system);

  /// Figure 9, F-2: the number of replaying threads, by workload.
  void workers(Figure& figure, const System& system);

  /// Figure 10: throughput and hits by the share of the pairs that the cache has room for.
  void cache(Figure& figure, const System& system);

  /// Figure 11: throughput and reclamations by the size of the logs.
  void logs(Figure& figure, const System& system);

  /// 4.3.2 and 7.4: undo records of a write, and how many were saved.
  void undo(Figure& figure, const System& system);

  /// 7.7: opening after SIGKILL, by the size of the logs.
  void recovery(Figure& figure, const System& system);

 private:
  Setup setup_for(std::uint64_t threads) const;

  const Config& config_;
  Bench& bench_;
};

}  // namespace perdix::bench::plugged
