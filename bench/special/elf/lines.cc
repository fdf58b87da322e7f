#include "special/elf/lines.h"

#include <cstdint>

#include "index/elf/read_hooks.h"
#include "testing/meter/line_set.h"
#include "testing/meter/meter.h"

namespace perdix::bench::points {
namespace {

constexpr std::uintptr_t kLine = 64;

// Of one call at a time.
testing::LineSet seen_copies;
std::uint64_t copy_lines = 0;

void on_copy_read(const void* p, std::size_t n) {
  if (n == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  for (std::uintptr_t line = begin / kLine; line <= (begin + n - 1) / kLine; ++line)
    copy_lines += seen_copies.insert(line) ? 1 : 0;
}

}  // namespace

LinesRead lines_read(std::size_t calls, const std::function<void(std::size_t)>& call) {
  constexpr testing::Meter::Kind kQuery = 1;
  testing::Meter meter;
  copy_lines = 0;
  detail::pm::Probe* const before = detail::pm::install_probe(&meter);
  detail::index::elf::copy_reader.store(on_copy_read);
  for (std::size_t i = 0; i < calls; ++i) {
    const testing::Meter::Operation operation(meter, kQuery);
    seen_copies.clear();
    call(i);
  }
  detail::index::elf::copy_reader.store(nullptr);
  detail::pm::install_probe(before);
  return {meter.traffic(kQuery).lines_read, copy_lines};
}

}  // namespace perdix::bench::points
