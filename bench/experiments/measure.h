// Measurements that several experiments share.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/trial.h"
#include "ycsb/phase.h"
#include "ycsb/store.h"

namespace perdix::bench {

/// Operations per second.
double throughput(const PhaseResult& result);

/// `part` divided by `whole`, which may be 0.
double ratio(std::uint64_t part, std::uint64_t whole);

std::string threads_text(std::uint64_t threads);

struct Restart {
  double first_answer = 0;  ///< seconds from before opening to the answer of the first get
  double resumed = 0;       ///< and until all that lies in DRAM is back
};

/// Loads `records` records in a process that is killed with SIGKILL, and opens what it has left.
/// Lost records count as wrong answers.
Restart restart_after_kill(Bench& bench, const System& system, Setup setup, std::uint64_t records);

}  // namespace perdix::bench
