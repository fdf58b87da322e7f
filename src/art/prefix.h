// The bytes that all keys below a node share after the byte that led to it (path compression).
//
// A node holds the length and as many of the bytes as fit; the rest is found in the key of any
// value below. Bytes lie in words, the first one most significant, so a word is compared with the
// key's in one instruction and its order is that of the keys.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

#include "art/key.h"

namespace perdix::detail::art {

template <class Key>
class Prefix {
  using Traits = KeyTraits<Key>;

 public:
  static constexpr unsigned kWords = Traits::kPrefixWords;
  static constexpr unsigned kStored = 8 * kWords;
  /// Whether every prefix is stored to its end.
  static constexpr bool kAlwaysWhole = Traits::kMaxSize <= kStored;

  Prefix() = default;
  Prefix(const std::array<std::uint64_t, kWords>& words, unsigned length)
      : words_(words), length_(length) {}

  /// `length` bytes of `key` from `depth` on.
  static Prefix of(Key key, unsigned depth, unsigned length) {
    assert(depth + length <= Traits::size(key));
    Prefix prefix;
    prefix.length_ = length;
    for (unsigned i = 0; 8 * i < prefix.stored(); ++i)
      prefix.words_[i] = Traits::word(key, depth + 8 * i);
    return prefix;
  }

  /// What two nodes have when the upper one, which led to the lower by `byte`, goes away.
  static Prefix joined(const Prefix& upper, std::uint8_t byte, const Prefix& lower) {
    Prefix prefix;
    prefix.length_ = upper.length_ + 1 + lower.length_;
    for (unsigned i = 0; i < prefix.stored(); ++i) {
      prefix.set_byte(i, i < upper.length_    ? upper.byte(i)
                         : i == upper.length_ ? byte
                                              : lower.byte(i - upper.length_ - 1));
    }
    return prefix;
  }

  /// Without the first `count` bytes. Only if all bytes are stored.
  Prefix without_first(unsigned count) const {
    assert(length_ <= kStored && count <= length_);
    Prefix prefix;
    prefix.length_ = length_ - count;
    for (unsigned i = 0; i < prefix.length_; ++i) prefix.set_byte(i, byte(i + count));
    return prefix;
  }

  unsigned length() const { return length_; }
  unsigned stored() const { return std::min(length_, kStored); }
  std::uint64_t word(unsigned i) const { return words_[i]; }

  std::uint8_t byte(unsigned i) const {
    assert(i < kStored);
    return static_cast<std::uint8_t>(words_[i / 8] >> (56 - 8 * (i % 8)));
  }

  /// How many of the stored bytes agree with the key's from `depth` on.
  unsigned agree(Key key, unsigned depth) const {
    unsigned agreed = stored();
    for (unsigned i = 0; 8 * i < stored(); ++i) {
      const std::uint64_t difference = words_[i] ^ Traits::word(key, depth + 8 * i);
      if (difference != 0) {
        agreed = std::min(agreed, 8 * i + static_cast<unsigned>(std::countl_zero(difference)) / 8);
        break;
      }
    }
    return std::min(agreed, Traits::size(key) - depth);  // a word has zeros after the key's end
  }

 private:
  void set_byte(unsigned i, std::uint8_t byte) {
    const unsigned shift = 56 - 8 * (i % 8);
    words_[i / 8] =
        (words_[i / 8] & ~(std::uint64_t{0xff} << shift)) | (std::uint64_t{byte} << shift);
  }

  std::array<std::uint64_t, kWords> words_{};
  unsigned length_ = 0;
};

}  // namespace perdix::detail::art
