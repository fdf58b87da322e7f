// The parameters of the traffic model, with the reference testbed as the default: one Intel Xeon
// Gold 6230 (Cascade Lake) and six Optane DIMMs of the first generation, interleaved.
//
// docs/traffic-meter.md says where each figure comes from. Plain values; a model copies them when
// it is made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdix::testing {

/// Where a store is safe from a power failure, which decides what writes a line back.
enum class Platform : std::uint8_t {
  adr,   ///< in the memory controller: a flush writes the line back, and so does an eviction
  eadr,  ///< in the caches: a flush does nothing, only evictions write
};

struct CpuCacheOptions {
  /// Level 2 and last level together: the last level is filled by what leaves level 2, so a line is
  /// in one of them.
  std::size_t bytes = (std::size_t{1} << 20) + (std::size_t{55} << 19);
  std::size_t ways = 16;
};

struct PrefetchOptions {
  bool enabled = true;
  std::size_t streams = 32;    ///< pages whose accesses are followed at a time
  std::size_t per_access = 2;  ///< lines fetched for each access that continues a stream
  std::size_t distance = 20;   ///< lines that a stream runs ahead at most
};

struct DeviceOptions {
  std::size_t media_unit = 256;  ///< bytes that the media read and write as one: 64 to 4096
  std::size_t dimms = 6;
  std::size_t interleave = 4096;              ///< bytes in a row on one DIMM
  std::size_t write_buffer_bytes = 16 << 10;  ///< of each DIMM; combines writes to one media unit
  std::size_t read_buffer_bytes = 16 << 10;   ///< of each DIMM; holds what was read last
};

struct MeterOptions {
  Platform platform = Platform::adr;
  CpuCacheOptions cache;
  PrefetchOptions prefetch;
  DeviceOptions device;
  /// Lines of DRAM that each operation brings into the cache, where they displace PM. The meter
  /// does not see accesses to DRAM; 0 says that they leave PM alone.
  std::size_t dram_lines_per_operation = 0;
  /// False: write buffers have a log without records, so that what these cost is known. Indexes
  /// must be made while the meter is the probe. Integers only: the record of a string is its
  /// commit.
  bool log_records = true;
};

}  // namespace perdix::testing
