// Counts the lines that queries read from persistent memory and from copies in DRAM. It needs the
// probe of an instrumented build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace perdix::bench::points {

/// Lines of 64 bytes.
struct LinesRead {
  std::uint64_t pm = 0;
  std::uint64_t dram = 0;  ///< of an Elf's cache
};

/// Calls call(0), call(1), ... and counts the distinct lines that each call reads. Returns zeros in
/// a normal build. No other thread may use a pool during the call.
LinesRead lines_read(std::size_t calls, const std::function<void(std::size_t)>& call);

}  // namespace perdix::bench::points
