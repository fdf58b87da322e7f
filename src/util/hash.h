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
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace perdix::detail::util {

// One function, with all that it calls inside: of a length that is known little of it is left.
// Where its caller takes it in, compilers have left its parts outside.
[[gnu::flatten, gnu::noinline]] inline std::uint64_t hash(std::uint64_t key) noexcept {
  return XXH3_64bits(&key, sizeof key);
}

inline std::uint64_t hash(std::string_view key) noexcept {
  return XXH3_64bits(key.data(), key.size());
}

}  // namespace perdix::detail::util
