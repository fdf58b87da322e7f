// Measurements of real Optane DIMMs: 120.96 million inserts of 16-byte pairs by one thread into
// CCEH and FAST&FAIR, as published by the authors of the SpTree paper. docs/traffic-meter.md says
// how far the traffic meter is from these figures.
#pragma once

#include <span>
#include <string_view>

namespace perdix::bench::spot_on {

struct DimmInserts {
  std::string_view system;
  bool log = false;       ///< inserts were also appended to a log
  double media_read = 0;  ///< bytes for each insert
  double media_written = 0;
  double per_second = 0;
};

/// Returns the rows of a system, the row without a log first. There are none for the skip list,
/// whose figures were not published.
std::span<const DimmInserts> dimm_inserts(std::string_view system);

}  // namespace perdix::bench::spot_on
