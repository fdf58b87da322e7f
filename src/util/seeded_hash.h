// Hashing of keys with a secret: a caller who chooses keys without knowing the seed cannot choose
// keys whose hashes have bits in common.
//
// A number is hashed by multiply-shift with 128 bits (Dietzfelbinger 1996; Thorup, "High Speed
// Hashing for Integers and Strings", 2015): the high half of a * key + b, where a and b are secret.
// Over the choice of a and b, the hashes of two different numbers are independent and uniform, so
// any n of their bits agree with a chance of 2^-n. The steps that follow map the 64 bits one to
// one, which keeps that and has numbers that follow each other spread like random ones.
//
// Bytes are hashed by XXH3 with a secret of its own, and the result as a number. So what remains is
// that two texts have all 64 bits of XXH3 in common, which nobody knows how to bring about without
// the secret.
//
// The seed is not protected from an observer of hashes or of their order: this is no cryptographic
// function. A seed of 0 is none, for tables that were made before there were seeds: then the hash
// is hash().
//
// The values are the same on every machine and in every release: tables in persistent memory depend
// on them. Constant once made; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "util/hash.h"

namespace perdix::detail::util {

class SeededHash {
 public:
  explicit SeededHash(std::uint64_t seed) noexcept;

  [[gnu::always_inline]] inline std::uint64_t operator()(std::uint64_t key) const noexcept {
    if (!seeded_) [[unlikely]]
      return hash(key);
    return of_number(key);
  }
  std::uint64_t operator()(std::string_view key) const noexcept;

 private:
  using U128 = unsigned __int128;

  std::uint64_t of_number(std::uint64_t key) const noexcept {
    constexpr std::uint64_t kMultiplier = 0x9fb2'1c65'1e98'df25;  // that of XXH3
    const U128 low = static_cast<U128>(factor_low_) * key + addend_;
    std::uint64_t mixed = static_cast<std::uint64_t>(low >> 64) + factor_high_ * key;
    mixed ^= mixed >> 32;
    mixed *= kMultiplier;
    return mixed ^ mixed >> 29;
  }

  bool seeded_;
  std::uint64_t factor_low_;
  std::uint64_t factor_high_;
  U128 addend_;
  std::array<std::uint64_t, XXH3_SECRET_DEFAULT_SIZE / sizeof(std::uint64_t)> secret_;
};

}  // namespace perdix::detail::util
