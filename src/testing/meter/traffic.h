// What the meter counts. Plain values that can be added and subtracted.
#pragma once

#include <cstdint>

namespace perdix::testing {

/// Bytes that crossed the memory bus (imc) and bytes that the media moved.
struct DeviceTraffic {
  std::uint64_t imc_read = 0;
  std::uint64_t imc_written = 0;
  /// For reads of the processor. What Intel's tools report: they subtract one read for each write.
  std::uint64_t media_read = 0;
  std::uint64_t media_written = 0;
  /// Read to complete a unit of which only a part was written. Not in `media_read`.
  std::uint64_t media_read_to_modify = 0;

  friend bool operator==(const DeviceTraffic&, const DeviceTraffic&) = default;

  DeviceTraffic& operator+=(const DeviceTraffic& other) {
    imc_read += other.imc_read;
    imc_written += other.imc_written;
    media_read += other.media_read;
    media_written += other.media_written;
    media_read_to_modify += other.media_read_to_modify;
    return *this;
  }

  friend DeviceTraffic operator-(DeviceTraffic a, const DeviceTraffic& b) {
    a.imc_read -= b.imc_read;
    a.imc_written -= b.imc_written;
    a.media_read -= b.media_read;
    a.media_written -= b.media_written;
    a.media_read_to_modify -= b.media_read_to_modify;
    return a;
  }
};

/// Everything about one kind of operation, in total.
struct Traffic {
  std::uint64_t operations = 0;
  std::uint64_t lines_read = 0;     ///< distinct lines of 64 bytes per operation, as announced
  std::uint64_t lines_written = 0;  ///< the same
  std::uint64_t flushes = 0;        ///< lines that were flushed, as often as they were
  std::uint64_t fences = 0;
  DeviceTraffic device;  ///< caused during these operations, evictions of older lines included

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

}  // namespace perdix::testing
