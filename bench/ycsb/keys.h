// Keys and values of the benchmark, derived from record numbers.
//
// Record n has the key spread(2n), and no record has the key spread(2n + 1). The benchmark
// therefore knows what is in an index without storing it. `spread` is a bijection of 64-bit numbers
// (random order) or the identity (sequential order). It costs a few multiplications, the same for
// every system. Each thread needs a separate source, because byte keys share a buffer.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/types.h>

#include "ycsb/shape.h"

namespace perdix::bench {

/// A bijection in which each output bit depends on all input bits: two rounds of xor-shift and
/// multiplication by an odd number (the finaliser of SplitMix64). Each step is invertible.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Record numbers to 64-bit keys.
class KeySpread {
 public:
  constexpr KeySpread(KeyOrder order, std::uint64_t seed) noexcept
      : random_(order == KeyOrder::random), offset_(random_ ? mix(seed) : 0) {}

  /// The key of record `number`, number < 2^63.
  constexpr std::uint64_t present(std::uint64_t number) const noexcept {
    return spread(2 * number);
  }

  /// A key that no record has; different numbers give different keys.
  constexpr std::uint64_t absent(std::uint64_t number) const noexcept {
    return spread(2 * number + 1);
  }

 private:
  constexpr std::uint64_t spread(std::uint64_t x) const noexcept {
    return random_ ? mix(x + offset_) : x;
  }

  bool random_;
  std::uint64_t offset_;
};

/// Keys in the form in which an index takes them.
template <Storable K>
class KeySource;

template <>
class KeySource<std::uint64_t> {
 public:
  explicit KeySource(const Dataset& data) : spread_(data.order, data.seed) {}

  std::uint64_t present(std::uint64_t number) const noexcept { return spread_.present(number); }
  std::uint64_t absent(std::uint64_t number) const noexcept { return spread_.absent(number); }

 private:
  KeySpread spread_;
};

/// "user", zeros up to the size asked for, and the 64-bit key as 16 hexadecimal digits, which sort
/// as the numbers do. A size below 20 drops the front of the prefix. A key stays valid until the
/// next one is made.
template <>
class KeySource<std::string> {
 public:
  explicit KeySource(const Dataset& data)
      : spread_(data.order, data.seed), buffer_(data.shape.key_size, '0') {
    constexpr std::string_view kPrefix = "user";
    buffer_.replace(0, std::min(kPrefix.size(), buffer_.size() - kDigits), kPrefix, 0,
                    std::min(kPrefix.size(), buffer_.size() - kDigits));
  }

  std::string_view present(std::uint64_t number) { return write(spread_.present(number)); }
  std::string_view absent(std::uint64_t number) { return write(spread_.absent(number)); }

 private:
  static constexpr std::size_t kDigits = kMinByteKeySize;

  std::string_view write(std::uint64_t key) {
    char* out = buffer_.data() + buffer_.size() - kDigits;
    for (int shift = 56; shift >= 0; shift -= 8, out += 2) {
      std::memcpy(out, &kHexPairs[2 * ((key >> shift) & 0xff)], 2);
    }
    return buffer_;
  }

  static constexpr std::array<char, 512> kHexPairs = [] {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<char, 512> pairs{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      pairs[2 * byte] = digits[byte >> 4];
      pairs[2 * byte + 1] = digits[byte & 15];
    }
    return pairs;
  }();

  KeySpread spread_;
  std::string buffer_;
};

/// Values in the form in which an index takes them. `version` tells one update of a record from the
/// next.
template <Storable V>
class ValueSource;

template <>
class ValueSource<std::uint64_t> {
 public:
  explicit ValueSource(const Dataset&) {}

  std::uint64_t of(std::uint64_t number, std::uint64_t version) const noexcept {
    return number * 0x9e3779b97f4a7c15 + version;
  }
};

/// Values are views of a block of random bytes, so making one copies nothing.
template <>
class ValueSource<std::string> {
 public:
  explicit ValueSource(const Dataset& data)
      : size_(data.shape.value_size), block_(kWindows + size_) {
    std::uint64_t x = data.seed;
    for (char& byte : block_) byte = static_cast<char>(mix(++x));
  }

  std::string_view of(std::uint64_t number, std::uint64_t version) const noexcept {
    return {block_.data() + (number * 31 + version) % kWindows, size_};
  }

 private:
  static constexpr std::size_t kWindows = 4096;

  std::size_t size_;
  std::vector<char> block_;
};

}  // namespace perdix::bench
