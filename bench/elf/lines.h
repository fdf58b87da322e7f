// What queries read of persistent memory: counted in an instrumented build, which has a probe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace perdix::bench::points {

/// Calls call(0), call(1), ... and counts the lines of 64 bytes that they read, each once in a
/// call. 0 in a normal build. No other thread may use a pool meanwhile.
std::uint64_t lines_read(std::size_t calls, const std::function<void(std::size_t)>& call);

}  // namespace perdix::bench::points
