// One cache line read as a vector, and compared with a byte in all positions together.
//
// The loads here are the only place where perdix reads, without atomics, memory that another thread
// may be writing. Callers validate a version afterwards and discard the result if it changed, or
// check the pair that it stands for. The loads are hidden from ThreadSanitizer for that reason.
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

namespace perdix::detail::util {

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

/// Bit i is set if byte i of the 32 at `p`, which is aligned to 32, equals `byte`.
__attribute__((no_sanitize("thread"))) inline std::uint32_t equal_bytes_of_half_line(
    const void* p, std::uint8_t byte) {
  const __m256i equal = _mm256_cmpeq_epi8(_mm256_load_si256(static_cast<const __m256i*>(p)),
                                          _mm256_set1_epi8(static_cast<char>(byte)));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
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

inline std::uint64_t equal_in_two_words(std::uint64_t low, std::uint64_t high, std::uint8_t byte) {
  const __m128i bytes = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  const __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(byte)));
  return static_cast<unsigned>(_mm_movemask_epi8(equal));
}

inline std::uint64_t equal_bytes(Line line, std::uint8_t byte) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < line.size(); i += 2)
    mask |= equal_in_two_words(line[i], line[i + 1], byte) << (8 * i);
  return mask;
}

__attribute__((no_sanitize("thread"))) inline std::uint32_t equal_bytes_of_half_line(
    const void* p, std::uint8_t byte) {
  std::array<std::uint64_t, 4> words;
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = __atomic_load_n(static_cast<const std::uint64_t*>(p) + i, __ATOMIC_RELAXED);
  return static_cast<std::uint32_t>(equal_in_two_words(words[0], words[1], byte) |
                                    equal_in_two_words(words[2], words[3], byte) << 16);
}

#endif

}  // namespace perdix::detail::util
