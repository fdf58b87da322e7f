// What queries read of persistent memory, and of copies in DRAM: counted in an instrumented build,
// which has a probe.
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

/// Calls call(0), call(1), ... and counts the lines that they read, each once in a call. None in a
/// normal build. No other thread may use a pool meanwhile.
LinesRead lines_read(std::size_t calls, const std::function<void(std::size_t)>& call);

}  // namespace perdix::bench::points
