// Sizes of the blocks that a container gets. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "index/tips_of/layout.h"

namespace perdix::detail::index::tips_of {

inline constexpr std::uint64_t kBlockUnit = 16;
inline constexpr std::uint64_t kMaxSmallBlock = kSmallClasses * kBlockUnit;

/// The bytes of a block of a class.
constexpr std::uint64_t size_of_class(unsigned number) {
  if (number < kSmallClasses) return (number + 1) * kBlockUnit;
  const unsigned large = number - kSmallClasses;
  const std::uint64_t power = kMaxSmallBlock << large / 4;
  return power + (large % 4 + 1) * (power / 4);
}

inline constexpr std::uint64_t kMaxBlock = size_of_class(kClasses - 1);

/// The class of a block of at least `bytes`, from 1 to kMaxBlock.
constexpr unsigned class_of(std::uint64_t bytes) {
  if (bytes <= kMaxSmallBlock) return static_cast<unsigned>((bytes - 1) / kBlockUnit);
  const auto power = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
  const auto quarter = static_cast<unsigned>((bytes - 1) >> (power - 2)) & 3U;
  return kSmallClasses + (power - 9) * 4 + quarter;
}

/// The largest class whose blocks have at most `bytes`, a multiple of kBlockUnit.
constexpr unsigned largest_class_within(std::uint64_t bytes) {
  if (bytes >= kMaxBlock) return kClasses - 1;
  const unsigned number = class_of(bytes);
  return size_of_class(number) == bytes ? number : number - 1;
}

static_assert(size_of_class(class_of(kMaxSmallBlock)) == kMaxSmallBlock);
static_assert(size_of_class(class_of(kMaxSmallBlock + 1)) == kMaxSmallBlock / 4 * 5);
static_assert(size_of_class(class_of(1024)) == 1024 && size_of_class(class_of(1025)) == 1280);
static_assert(size_of_class(largest_class_within(1264)) == 1024);

}  // namespace perdix::detail::index::tips_of
