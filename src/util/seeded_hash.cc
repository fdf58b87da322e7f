#include "util/seeded_hash.h"

#include "util/random.h"

namespace perdix::detail::util {

SeededHash::SeededHash(std::uint64_t seed) noexcept : seeded_(seed != 0) {
  factor_low_ = splitmix64(seed);
  factor_high_ = splitmix64(seed);
  const std::uint64_t low = splitmix64(seed);
  addend_ = static_cast<U128>(splitmix64(seed)) << 64 | low;
  for (std::uint64_t& word : secret_) word = splitmix64(seed);
}

std::uint64_t SeededHash::operator()(std::string_view key) const noexcept {
  if (!seeded_) [[unlikely]]
    return hash(key);
  return of_number(XXH3_64bits_withSecret(key.data(), key.size(), secret_.data(), sizeof secret_));
}

}  // namespace perdix::detail::util
