// What the columns of figures may show.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/figure.h"
#include "ycsb/trial.h"

namespace perdix::bench {

/// What is known of a phase after it.
struct Measurement {
  std::optional<PhaseResult> phase;  ///< none: of an opening after SIGKILL
  std::optional<Reopened> reopened;
  std::uint64_t records = 0;  ///< in the index
  Workload workload;
  Shape shape;
  std::uint64_t budget = 0;  ///< bytes of DRAM that write buffers may take
  OwnFootprint before, after;
};

struct MetricKind {
  enum class From : std::uint8_t { clock, sizes, differences, meter };

  std::string_view name;
  Unit unit;
  From from;  ///< `sizes` needs Measurement::after, `differences` both sizes, `meter` a meter
  double (*value)(const Measurement&);
};

/// The kind of that name. Throws perdix::Error invalid_argument, which lists the names.
const MetricKind& find_metric(std::string_view name);

/// The share of the operations in each bucket of latencies, by the bucket's upper bound in
/// nanoseconds. Operations that took longer than the last bound are in the last bucket.
std::vector<std::pair<double, double>> distribution_of(const detail::util::Histogram& latency);

}  // namespace perdix::bench
