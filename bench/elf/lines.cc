#include "elf/lines.h"

#include "testing/meter/meter.h"

namespace perdix::bench::points {

std::uint64_t lines_read(std::size_t calls, const std::function<void(std::size_t)>& call) {
  constexpr testing::Meter::Kind kQuery = 1;
  testing::Meter meter;
  detail::pm::Probe* const before = detail::pm::install_probe(&meter);
  for (std::size_t i = 0; i < calls; ++i) {
    const testing::Meter::Operation operation(meter, kQuery);
    call(i);
  }
  detail::pm::install_probe(before);
  return meter.traffic(kQuery).lines_read;
}

}  // namespace perdix::bench::points
