// The traffic meter in the benchmark: what each kind of operation costs on the memory bus and on
// the media. It needs an instrumented build; in a normal one there is none.
#pragma once

#include <cstdint>
#include <memory>

#include "ycsb/meter.h"
#include "ycsb/options.h"

namespace perdix::bench {

/// How a meter models the machine.
struct TrafficModel {
  bool caches_persist = false;  ///< eADR: only evictions write lines back
  std::uint64_t media_unit = 256;
  std::uint64_t cache_bytes = std::uint64_t{4} << 20;
  bool log_records = true;  ///< false: of write buffers, for what they cost; integers only
};

/// A meter, or null in a normal build.
std::unique_ptr<Meter> make_meter(const TrafficModel& model);

/// Makes a meter for the run and adds its options to the command; does nothing in a normal build.
void add_meter(CLI::App& command, Options& options);

}  // namespace perdix::bench
