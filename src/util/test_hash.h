// Numbers that hash alike without a seed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdix::detail::util {

/// The way back from a hash() of a number to the number.
inline std::uint64_t number_of_hash(std::uint64_t hash) {
  constexpr std::uint64_t kSecret = 0xc73a'b174'c5ec'd5a2;
  std::uint64_t inverse = 0x9fb2'1c65'1e98'df25;  // by Newton's method
  for (int i = 0; i < 6; ++i) inverse *= 2 - inverse * 0x9fb2'1c65'1e98'df25;
  std::uint64_t mixed = hash ^ hash >> 28 ^ hash >> 56;
  mixed *= inverse;
  mixed ^= (mixed >> 35) + sizeof mixed;
  mixed *= inverse;
  std::uint64_t before = mixed;  // the rotations are linear over bits, and of an order of 64
  for (int i = 1; i < 64; ++i) before = mixed ^ std::rotl(before, 49) ^ std::rotl(before, 24);
  return std::rotl(before ^ kSecret, 32);
}

/// At most 65536 numbers whose hash() is the same but for its last 16 bits.
inline std::vector<std::uint64_t> numbers_that_hash_alike(std::size_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i)
    numbers.push_back(number_of_hash(0x1234'5678'9abc'0000 | i));
  return numbers;
}

}  // namespace perdix::detail::util
