// The place of a number among a few others, without a branch on any of them.
//
// Uses AVX-512 where the compiler may. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace perdix::detail::util {

/// How many of the numbers are not above the limit.
template <std::size_t N>
unsigned count_not_above(const std::array<std::uint64_t, N>& numbers, std::uint64_t limit) {
  unsigned count = 0;
  std::size_t i = 0;
#ifdef __AVX512F__
  const __m512i limits = _mm512_set1_epi64(static_cast<long long>(limit));
  for (; i + 8 <= N; i += 8) {
    const __mmask8 not_above =
        _mm512_cmple_epu64_mask(_mm512_loadu_si512(numbers.data() + i), limits);
    count += static_cast<unsigned>(__builtin_popcount(not_above));
  }
#endif
  for (; i < N; ++i) count += numbers[i] <= limit ? 1 : 0;
  return count;
}

}  // namespace perdix::detail::util
