// A normal build has no probe.
#include "special/elf/lines.h"

namespace perdix::bench::points {

LinesRead lines_read(std::size_t calls, const std::function<void(std::size_t)>& call) {
  for (std::size_t i = 0; i < calls; ++i) call(i);
  return {};
}

}  // namespace perdix::bench::points
