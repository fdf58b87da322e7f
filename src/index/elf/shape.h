// The sizes of an Elf that are fixed when it is created. Tests make small ones, so that few rows
// have the structure of many.
#pragma once

#include <cstdint>

#include <perdix/elf.h>

#include "alloc/layout.h"

namespace perdix::detail::index::elf {

struct Shape {
  std::uint32_t slot_shift = 22;      ///< a slot covers 16 MiB
  std::uint32_t segment_rows = 4096;  ///< inserted rows of a segment

  /// An insert compacts only if there are more inserted rows than this, and than a quarter of the
  /// others. Not kept in PM.
  std::uint64_t min_delta = Elf::kMinDelta;
};

inline constexpr std::uint32_t kMinSlotShift = 6;
inline constexpr std::uint32_t kMaxSlotShift = 28;
inline constexpr std::uint32_t kMaxSegmentRows = 32768;

constexpr bool valid(const Shape& shape) {
  return shape.slot_shift >= kMinSlotShift && shape.slot_shift <= kMaxSlotShift &&
         shape.segment_rows > 0 && shape.segment_rows <= kMaxSegmentRows;
}

/// Words of a block for this many slots: a header line less than they cover, so that a block of
/// usual size takes whole chunks of the allocator.
constexpr std::uint64_t block_words(std::uint64_t slots, std::uint32_t slot_shift) {
  return (slots << slot_shift) - alloc::kLargeHeader / sizeof(std::uint32_t);
}

/// The most words that the nodes of this many rows take: on each level an entry of a separate wide
/// list, then a counted TID.
constexpr std::uint64_t max_words(std::uint64_t rows, unsigned dimensions) {
  return rows * (4 * std::uint64_t{dimensions} + 2);
}

/// The most positions between the first and the last of them: the ends of blocks stay empty, less
/// than the node behind them needs. A node that needs several slots also leaves up to one slot
/// before it empty.
constexpr std::uint64_t max_span(std::uint64_t rows, unsigned dimensions,
                                 std::uint32_t slot_shift) {
  return 4 * max_words(rows, dimensions) + (std::uint64_t{4} << slot_shift);
}

}  // namespace perdix::detail::index::elf
