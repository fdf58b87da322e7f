// What the records of a run look like.
#pragma once

#include <cstddef>
#include <cstdint>

#include <perdix/types.h>

namespace perdix::bench {

/// In which order of keys the records are loaded.
enum class KeyOrder : std::uint8_t { random, sequential };

inline constexpr std::size_t kMinByteKeySize = 16;  ///< bytes; a key of kind bytes has 16 digits

struct Shape {
  Kind key_kind = Kind::u64;
  Kind value_kind = Kind::u64;
  std::size_t key_size = 8;    ///< bytes; 8 for u64
  std::size_t value_size = 8;  ///< bytes; 8 for u64

  std::size_t pair_size() const noexcept { return key_size + value_size; }
};

/// Everything that determines which key and value a record number stands for.
struct Dataset {
  Shape shape;
  KeyOrder order = KeyOrder::random;
  std::uint64_t seed = 1;
};

}  // namespace perdix::bench
