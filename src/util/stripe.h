// The current thread's stripe: a number that spreads threads over copies of something they would
// otherwise contend for.
//
// No registration and no state: the number is computed from the thread's control block address. Two
// threads may share a stripe, so what is striped must still be thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdix::detail::util {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr int kStripeBits = 6;
inline constexpr std::size_t kStripes = std::size_t{1} << kStripeBits;

/// In [0, kStripes); the same for a thread's whole life.
inline std::size_t current_stripe() noexcept {
  // Control blocks lie a multiple of the stack size apart, so all bits must take part: Fibonacci
  // hashing.
  const auto block = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  return static_cast<std::size_t>((block * 0x9e3779b97f4a7c15) >> (64 - kStripeBits));
}

}  // namespace perdix::detail::util
