// The experiments of section 3 of the SpTree paper, each for one system.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/figure.h"
#include "experiments/trial.h"
#include "spot_on/config.h"

namespace perdix::bench::spot_on {

/// Runs experiments once. Each adds the rows of a system to its figure, and rows of real DIMMs
/// beside them. experiment.cc lists the metrics of the figures.
class Round {
 public:
  Round(const Config& config, Bench& bench) : config_(config), bench_(bench) {}

  /// Figure 2: media bytes of an insert, without buffers and with them.
  void buffers(Figure& figure, const System& system);

  /// Figure 3: what the media read and write for an insert, with each technique more; with the log
  /// of the buffers, and without its records.
  void traffic(Figure& figure, const System& system);

  /// Figure 3: throughput of inserts, with each number of threads.
  void throughput(Figure& figure, const System& system);

  /// Figure 4: latencies of inserts, and of reads after them.
  void latency(Figure& figure, const System& system);

  /// Inserts with each share of the DRAM that buffers for all leaves take, with none and with all.
  void budgets(Figure& figure, const System& system);

  /// Media bytes of these inserts.
  void budget_traffic(Figure& figure, const System& system);

 private:
  struct Cost {
    double media_written = 0;
    double media_read = 0;
    double read_to_modify = 0;
    double flushes = 0;
    double fences = 0;
  };

  /// By the meter, in a pool whose lines have to be written back; what threads in the background do
  /// belongs to the inserts.
  Cost cost_of_insert(const System& system, Setup setup, bool log = true);

  /// Inserts that were made with a budget.
  struct Budgeted {
    std::string name;  ///< of the budget
    std::uint64_t budget = 0;
    double throughput = 0;
    std::uint64_t dram = 0;  ///< bytes that the system takes
  };
  Budgeted insert_with(const System& system, std::uint64_t threads, std::string name,
                       std::uint64_t budget);

  /// Without a budget and without a bound. The other budgets are shares of the difference in DRAM.
  std::pair<Budgeted, Budgeted> none_and_all(const System& system, std::uint64_t threads);

  Setup setup_for(std::uint64_t threads) const;

  const Config& config_;
  Bench& bench_;
};

}  // namespace perdix::bench::spot_on
