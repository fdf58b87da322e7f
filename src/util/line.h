// One cache line read as a vector, and compared with a byte in all positions at once.
//
// `load_line` and `load_part_of_line` are the one place where perdix reads memory that another
// thread may be writing without atomics: their callers validate a version afterwards and discard
// what they found if it changed, or look at what it stands for. They are hidden from
// ThreadSanitizer for that reason.
//
// Uses AVX-512 where the compiler may, else SSE2, which every x86-64 has. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#ifdef __AVX512BW__
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

namespace perdix::util {

#ifdef __AVX512BW__

using Line = __m512i;

/// Reads the 64 bytes at `p`, which is aligned to 64.
__attribute__((no_sanitize("thread"))) inline Line load_line(const void* p) {
  return _mm512_load_si512(p);
}

/// Reads `n` bytes at `p`, which is aligned to 8; n is 16, 32, 48 or 64. The others count as 0.
__attribute__((no_sanitize("thread"))) inline Line load_part_of_line(const void* p, std::size_t n) {
  return _mm512_maskz_loadu_epi8(~std::uint64_t{0} >> (64 - n), p);
}

/// Bit i is set if byte i equals `byte`.
inline std::uint64_t equal_bytes(Line line, std::uint8_t byte) {
  return _mm512_cmpeq_epi8_mask(line, _mm512_set1_epi8(static_cast<char>(byte)));
}

#else

using Line = std::array<std::uint64_t, 8>;

__attribute__((no_sanitize("thread"))) inline Line load_line(const void* p) {
  Line line;
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = __atomic_load_n(static_cast<const std::uint64_t*>(p) + i, __ATOMIC_RELAXED);
  }
  return line;
}

__attribute__((no_sanitize("thread"))) inline Line load_part_of_line(const void* p, std::size_t n) {
  Line line{};
  for (std::size_t i = 0; i < n / sizeof line[0]; ++i) {
    line[i] = __atomic_load_n(static_cast<const std::uint64_t*>(p) + i, __ATOMIC_RELAXED);
  }
  return line;
}

inline std::uint64_t equal_bytes(Line line, std::uint8_t byte) {
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(byte));
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < line.size(); i += 2) {
    const __m128i bytes =
        _mm_set_epi64x(static_cast<long long>(line[i + 1]), static_cast<long long>(line[i]));
    const auto equal = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)));
    mask |= std::uint64_t{equal} << (8 * i);
  }
  return mask;
}

#endif

}  // namespace perdix::util
