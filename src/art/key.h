// How the tree sees a key: as a sequence of bytes that is compared like an unsigned big-endian
// number or a string.
//
// Two kinds of keys. `std::uint64_t` is eight big-endian bytes that stay in a register; no key is a
// prefix of another, so nodes need no place for a key that ends in them. `std::string_view` is any
// bytes, up to kMaxKeySize, zero bytes and prefixes of other keys included.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace perdix::detail::art {

inline constexpr std::size_t kMaxKeySize = 65535;

/// Leads from a node to a child: the key's next byte, or kEnd if the key has no more bytes.
/// kEnd sorts first.
using Entry = int;
inline constexpr Entry kEnd = -1;

template <class Key>
struct KeyTraits;

template <>
struct KeyTraits<std::uint64_t> {
  /// Whether a key can be a proper prefix of another.
  static constexpr bool kMayEnd = false;
  static constexpr std::size_t kMaxSize = 8;
  /// How much of its prefix a node stores; here that is always all of it.
  static constexpr unsigned kPrefixWords = 1;

  static constexpr unsigned size(std::uint64_t) noexcept { return 8; }

  static constexpr Entry entry(std::uint64_t key, unsigned depth) noexcept {
    return static_cast<Entry>((key >> (56 - 8 * depth)) & 0xff);
  }

  /// The byte at `depth`, or 0 after the key's end.
  static constexpr std::uint8_t byte_or_zero(std::uint64_t key, unsigned depth) noexcept {
    return depth < 8 ? static_cast<std::uint8_t>(entry(key, depth)) : 0;
  }

  /// The eight bytes from `depth` on, the first one most significant, with zeros after the key's
  /// end.
  static constexpr std::uint64_t word(std::uint64_t key, unsigned depth) noexcept {
    return key << (8 * depth);
  }

  /// The rest of a key's bytes as a separate key, with zeros after its end; count < 8.
  static constexpr std::uint64_t without_first(std::uint64_t key, unsigned count) noexcept {
    return key << (8 * count);
  }

  static constexpr unsigned common_prefix(std::uint64_t a, std::uint64_t b,
                                          unsigned depth) noexcept {
    return static_cast<unsigned>(std::countl_zero(a ^ b)) / 8 - depth;
  }
};

template <>
struct KeyTraits<std::string_view> {
  static constexpr bool kMayEnd = true;
  static constexpr std::size_t kMaxSize = kMaxKeySize;
  static constexpr unsigned kPrefixWords = 4;

  static unsigned size(std::string_view key) noexcept { return static_cast<unsigned>(key.size()); }

  static Entry entry(std::string_view key, unsigned depth) noexcept {
    return depth < key.size() ? static_cast<unsigned char>(key[depth]) : kEnd;
  }

  static std::uint8_t byte_or_zero(std::string_view key, unsigned depth) noexcept {
    return depth < key.size() ? static_cast<std::uint8_t>(key[depth]) : 0;
  }

  static std::uint64_t word(std::string_view key, unsigned depth) noexcept {
    std::uint64_t bytes = 0;
    if (depth < key.size()) {
      std::memcpy(&bytes, key.data() + depth, std::min<std::size_t>(8, key.size() - depth));
    }
    return __builtin_bswap64(bytes);
  }

  static std::string_view without_first(std::string_view key, unsigned count) noexcept {
    return key.substr(std::min<std::size_t>(count, key.size()));
  }

  static unsigned common_prefix(std::string_view a, std::string_view b, unsigned depth) noexcept {
    const auto end = a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
    const auto from = a.begin() + depth;
    return static_cast<unsigned>(std::mismatch(from, end, b.begin() + depth).first - from);
  }
};

static_assert(std::endian::native == std::endian::little);

}  // namespace perdix::detail::art
