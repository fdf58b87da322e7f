#include "testing/meter/device.h"

#include <algorithm>

#include <perdix/error.h>

#include "testing/meter/line_map.h"

namespace perdix::testing {
namespace {

std::size_t checked_unit(const DeviceOptions& options) {
  const std::size_t unit = options.media_unit;
  const bool whole_lines = unit % kLineBytes == 0 && unit / kLineBytes <= 64 && unit > 0;
  if (!whole_lines || options.dimms == 0 || options.interleave % unit != 0) {
    throw Error(Errc::invalid_argument,
                "traffic model: the media unit is 64 to 4096 bytes in whole lines and divides the "
                "interleaving, and there is at least one DIMM");
  }
  return unit;
}

}  // namespace

Device::Device(const DeviceOptions& options)
    : unit_bytes_(checked_unit(options)),
      lines_(unit_bytes_ / kLineBytes),
      all_lines_(~std::uint64_t{0} >> (64 - lines_)),
      lines_per_stripe_(options.interleave / kLineBytes),
      written_units_(options.write_buffer_bytes / unit_bytes_),
      read_units_(options.read_buffer_bytes / unit_bytes_),
      dimms_(options.dimms) {}

void Device::read(std::uint64_t line) {
  traffic_.imc_read += kLineBytes;
  Dimm& dimm = dimm_of(line);
  const std::uint64_t unit = line / lines_;
  const auto written = std::ranges::find(dimm.written, unit, &Buffered::unit);
  if (written != dimm.written.end()) {
    if (written->complete || (written->dirty & bit_of(line)) != 0) return;
    traffic_.media_read += unit_bytes_;
    written->complete = true;
    return;
  }
  if (std::ranges::find(dimm.read, unit) == dimm.read.end()) read_media(dimm, unit);
}

void Device::read_media(Dimm& dimm, std::uint64_t unit) {
  traffic_.media_read += unit_bytes_;
  if (read_units_ == 0) return;
  if (dimm.read.size() == read_units_) dimm.read.erase(dimm.read.begin());
  dimm.read.push_back(unit);
}

void Device::write(std::uint64_t line) {
  traffic_.imc_written += kLineBytes;
  Dimm& dimm = dimm_of(line);
  const std::uint64_t unit = line / lines_;
  const auto written = std::ranges::find(dimm.written, unit, &Buffered::unit);
  if (written == dimm.written.end()) {
    add_written(dimm, unit);
  } else {
    std::rotate(written, written + 1, dimm.written.end());
  }
  dimm.written.back().dirty |= bit_of(line);
  if (written_units_ == 0) {
    write_media(dimm.written.back());
    dimm.written.clear();
  }
}

// A unit that was just read moves over from the read buffer and need not be read again.
void Device::add_written(Dimm& dimm, std::uint64_t unit) {
  if (written_units_ != 0 && dimm.written.size() == written_units_) {
    write_media(dimm.written.front());
    dimm.written.erase(dimm.written.begin());
  }
  const bool was_read = std::erase(dimm.read, unit) != 0;
  dimm.written.push_back({unit, 0, was_read});
}

void Device::write_media(const Buffered& buffered) {
  traffic_.media_written += unit_bytes_;
  if (!buffered.complete && buffered.dirty != all_lines_)
    traffic_.media_read_to_modify += unit_bytes_;
}

void Device::drain() {
  for (Dimm& dimm : dimms_) {
    for (const Buffered& buffered : dimm.written) write_media(buffered);
    dimm.written.clear();
  }
}

}  // namespace perdix::testing
