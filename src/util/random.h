// Random numbers for tests, benchmarks and randomised structures: xoshiro256++ (Blackman and
// Vigna), seeded by SplitMix64.
//
// The same seed gives the same sequence everywhere. Not for secrets. One object per thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace perdix::detail::util {

/// SplitMix64: one step of a 64-bit sequence that visits every state; also a good mixer of bits.
constexpr std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// A UniformRandomBitGenerator, so it also works with the distributions and algorithms of the
/// standard library.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (auto& word : state_) word = splitmix64(seed);
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  constexpr result_type operator()() noexcept {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// A number in [0, bound), bound > 0. The bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>((*this)()) * bound) >> 64);
  }

  /// A number in [0, 1) with 53 random bits.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  /// True with probability 1 / n, n > 0.
  constexpr bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace perdix::detail::util
