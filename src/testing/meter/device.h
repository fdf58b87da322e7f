// Persistent memory behind the memory bus: DIMMs whose media move whole units (the XPLine of
// Optane), each with a buffer that combines writes and one that holds what was read.
//
// A write to a unit goes to the write buffer. When the buffer is full, its least recently used unit
// is written to the media; if only a part of it was written, the rest is read first. A read is
// served from either buffer if it can be, else a whole unit is read. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testing/meter/options.h"
#include "testing/meter/traffic.h"

namespace perdix::testing {

class Device {
 public:
  explicit Device(const DeviceOptions& options);

  void read(std::uint64_t line);
  void write(std::uint64_t line);

  /// Writes the rest of the buffers to the media, as if it were evicted.
  void drain();

  const DeviceTraffic& traffic() const noexcept { return traffic_; }

 private:
  struct Buffered {
    std::uint64_t unit = 0;
    std::uint64_t dirty = 0;  // one bit per line of the unit
    bool complete = false;    // all lines are there, not only the dirty ones
  };

  // The most recently used unit is at the back.
  struct Dimm {
    std::vector<Buffered> written;
    std::vector<std::uint64_t> read;
  };

  Dimm& dimm_of(std::uint64_t line) { return dimms_[line / lines_per_stripe_ % dimms_.size()]; }
  std::uint64_t bit_of(std::uint64_t line) const { return std::uint64_t{1} << line % lines_; }
  void read_media(Dimm& dimm, std::uint64_t unit);
  void add_written(Dimm& dimm, std::uint64_t unit);
  void write_media(const Buffered& buffered);

  std::size_t unit_bytes_;
  std::size_t lines_;  // per unit
  std::uint64_t all_lines_;
  std::uint64_t lines_per_stripe_;
  std::size_t written_units_;  // capacity of a write buffer
  std::size_t read_units_;     // capacity of a read buffer
  std::vector<Dimm> dimms_;
  DeviceTraffic traffic_;
};

}  // namespace perdix::testing
