// Checksums of structures in persistent memory: 64-bit XXH3 of bytes.
//
// The seed is for what must be covered without being stored, for example a position that never
// repeats: two equal byte strings with different seeds have different checksums. Pure functions;
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "util/hash.h"

namespace perdix::detail::util {

inline std::uint64_t checksum(const void* data, std::size_t size, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(data, size, seed);
}

}  // namespace perdix::detail::util
