// Positions in a pool. Structures in PM hold offsets, never addresses, so that a pool opens at any
// address.
#pragma once

#include <cstdint>

namespace perdix::detail::pm {

/// Byte offset from the start of the pool. 0 is null: the superblock lies there.
using Offset = std::uint64_t;

inline constexpr Offset kNull = 0;

/// The unit of write-back: what one flush writes, and the x86 cache line.
inline constexpr std::uint64_t kLineSize = 64;

}  // namespace perdix::detail::pm
