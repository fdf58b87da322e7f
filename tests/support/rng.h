// A small seeded generator for tests (SplitMix64, Steele et al. 2014): the same seed gives the same
// numbers on every machine, which the distributions of <random> do not promise. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace perdix::test {

/// A bijective mix of 64 bits: near inputs give far outputs, different inputs different outputs.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A number for a text, to derive the seed of a case from its name.
constexpr std::uint64_t mix(std::string_view text) {
  std::uint64_t sum = text.size();
  for (const char c : text) sum = mix(sum * 31 + static_cast<unsigned char>(c));
  return sum;
}

class Rng {
 public:
  using result_type = std::uint64_t;  // with min, max and (): what std::shuffle asks for

  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t operator()() { return mix(state_ += 0x9e3779b97f4a7c15); }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

  /// A number in [0, n); n > 0. The bias for large n does not matter to tests.
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }

  /// A number in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }

  /// True once in n times.
  bool once_in(std::uint64_t n) { return below(n) == 0; }

  /// An independent generator.
  Rng fork() { return Rng((*this)()); }

 private:
  std::uint64_t state_;
};

}  // namespace perdix::test
