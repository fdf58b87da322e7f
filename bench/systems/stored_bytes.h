// Keys and values as byte strings, for stores that have no other type. A number becomes eight
// big-endian bytes, so that byte order is numeric order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace perdix::bench {

class StoredBytes {
 public:
  explicit StoredBytes(std::uint64_t number) noexcept {
    static_assert(std::endian::native == std::endian::little);
    const std::uint64_t big_endian = __builtin_bswap64(number);
    std::memcpy(digits_.data(), &big_endian, sizeof big_endian);
  }
  explicit StoredBytes(std::string_view bytes) noexcept : bytes_(bytes) {}

  std::string_view view() const noexcept {
    return bytes_.data() != nullptr ? bytes_ : std::string_view(digits_.data(), digits_.size());
  }

 private:
  std::array<char, 8> digits_{};
  std::string_view bytes_;
};

}  // namespace perdix::bench
