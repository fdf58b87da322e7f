// One cache line read as a vector, and compared with a byte in all positions at once.
//
// `load_line` is the one place where perdix reads memory that another thread may be writing without
// atomics: its callers validate a version afterwards and discard what they found if it changed. It
// is hidden from ThreadSanitizer for that reason.
//
// Uses AVX-512 where the compiler may; otherwise plain loops that it vectorises. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __AVX512BW__
#include <immintrin.h>
#endif

namespace perdix::util {

#ifdef __AVX512BW__

using Line = __m512i;

/// Reads the 64 bytes at `p`, which is aligned to 64.
[[gnu::no_sanitize("thread")]] inline Line load_line(const void* p) { return _mm512_load_si512(p); }

/// Bit i is set if byte i equals `byte`.
inline std::uint64_t equal_bytes(Line line, std::uint8_t byte) {
  return _mm512_cmpeq_epi8_mask(line, _mm512_set1_epi8(static_cast<char>(byte)));
}

#else

using Line = std::array<std::uint64_t, 8>;

[[gnu::no_sanitize("thread")]] inline Line load_line(const void* p) {
  Line line;
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = __atomic_load_n(static_cast<const std::uint64_t*>(p) + i, __ATOMIC_RELAXED);
  }
  return line;
}

inline std::uint64_t equal_bytes(Line line, std::uint8_t byte) {
  std::array<std::uint8_t, 64> bytes;
  std::memcpy(bytes.data(), line.data(), sizeof bytes);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) mask |= std::uint64_t{bytes[i] == byte} << i;
  return mask;
}

#endif

}  // namespace perdix::util
