// The results of a run of YCSB's workloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/figure.h"
#include "util/histogram.h"
#include "ycsb/config.h"
#include "ycsb/meter.h"
#include "ycsb/trial.h"

namespace perdix::bench {

/// One phase of one system in one round.
struct Round {
  double seconds = 0;
  std::uint64_t operations = 0;
  std::uint64_t wrong = 0;
  std::uint64_t checksum = 0;
  Footprint footprint;
  std::optional<Reopened> reopened;  ///< instead of the above for the workload "reopen"
};

/// One phase of one system: all its rounds.
struct Result {
  std::string system;
  std::string workload;
  unsigned threads = 1;
  std::vector<Round> rounds;
  detail::util::Histogram latency;  ///< nanoseconds, sampled, of all rounds
  std::vector<Count> counts;        ///< of the meter, of all rounds

  std::uint64_t operations() const;          ///< of all rounds
  double operations_per_second() const;      ///< median of the rounds
  double nanoseconds_per_operation() const;  ///< of one thread, at the median throughput
  /// Returns the count per operation of its kind. Divides a count that belongs to no kind by the
  /// operations of all kinds.
  double per_operation(const Count& count) const;
  bool is_reopen() const { return !rounds.empty() && rounds.front().reopened.has_value(); }
};

struct Results {
  Config config;
  Environment environment;
  Durability durability = Durability::process;  ///< what `automatic` came to
  double clock_nanoseconds = 0;  ///< of looking at the clock twice, part of every sampled latency
  std::vector<SystemInfo> systems;
  std::vector<Result> results;

  const Result* find(std::string_view system, std::string_view workload, unsigned threads) const;

  /// The throughput divided by the baseline's: the median over rounds of the ratio within a round.
  /// For `reopen`, the baseline's time divided by this one's. Empty without a baseline.
  std::optional<double> ratio(const Result& result) const;

  /// The ratio as in ratio(), but to this system with the number of threads that was named first.
  /// Empty for that number itself.
  std::optional<double> scaling(const Result& result) const;

  /// One sentence for each result with wrong answers, each with lost records, and each one that
  /// disagrees with another system's.
  std::vector<std::string> problems() const;
};

/// For each number of threads a line per workload and a column per system: the throughput, and
/// that by the throughput of the first number of threads.
std::vector<Figure> summaries_of(const Results& results);

}  // namespace perdix::bench
