// Hashing of keys: XXH3 with 64 bits, compiled inline, so that the hash of an integer is a few
// instructions.
//
// The values are the same on every machine and in every release: fingerprints and tables in
// persistent memory depend on them. Pure functions; thread-safe.
#pragma once

#define XXH_INLINE_ALL
#ifdef __AVX512F__
// Keys and records are too short to gain from wider vectors, whose compiler headers are not free of
// warnings.
#define XXH_VECTOR XXH_AVX2
#endif
#include <bit>
#include <cstdint>
#include <string_view>

#include <xxhash.h>

namespace perdix::detail::util {

/// XXH3_64bits() of the eight bytes of a number, written out: from the header, compilers take it
/// into a caller in pieces, with calls between them.
inline std::uint64_t hash(std::uint64_t key) noexcept {
  constexpr std::uint64_t kSecret = 0xc73a'b174'c5ec'd5a2;  // words 1 and 2 of XXH3's, combined
  constexpr std::uint64_t kMultiplier = 0x9fb2'1c65'1e98'df25;
  std::uint64_t mixed = std::rotl(key, 32) ^ kSecret;
  mixed ^= std::rotl(mixed, 49) ^ std::rotl(mixed, 24);
  mixed *= kMultiplier;
  mixed ^= (mixed >> 35) + sizeof key;
  mixed *= kMultiplier;
  return mixed ^ mixed >> 28;
}

inline std::uint64_t hash(std::string_view key) noexcept {
  return XXH3_64bits(key.data(), key.size());
}

}  // namespace perdix::detail::util
