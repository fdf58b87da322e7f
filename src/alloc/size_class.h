// The sizes of small blocks, and how a span of each is laid out. All constants; the format depends
// on them.
//
// Up to 256 bytes the classes are 16 bytes apart and up to 2 KiB 32 bytes, so a node of 1056 or
// 1120 bytes has its own. From there on there is one class for each number of blocks that a span
// can hold, 31 down to 2, with the largest multiple of 64 bytes that fits that often: no other
// choice of sizes would get more blocks into a span.
//
// A block is aligned to 16 bytes, to 32 if its class's size is a multiple of 32, and to 64 if it is
// one of 64.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "alloc/layout.h"

namespace perdix::detail::alloc {

struct SizeClass {
  std::uint32_t size = 0;        ///< bytes of a block
  std::uint32_t blocks = 0;      ///< per span
  std::uint32_t words = 0;       ///< of the bitmap
  std::uint32_t data = 0;        ///< where the blocks begin in the span; whole lines
  std::uint32_t reciprocal = 0;  ///< ceil(2^32 / size)
};

inline constexpr std::uint32_t kFineLimit = 256;
inline constexpr std::uint32_t kSmallLimit = 2048;
inline constexpr unsigned kFineClasses = kFineLimit / 16;
inline constexpr unsigned kSmallClasses = kFineClasses + (kSmallLimit - kFineLimit) / 32;
inline constexpr unsigned kMaxCoarseBlocks = 31;
inline constexpr unsigned kClasses = kSmallClasses + kMaxCoarseBlocks - 1;
inline constexpr std::uint32_t kCoarseSpace = kSpanSize - pm::kLineSize;

constexpr SizeClass make_size_class(std::uint32_t size) {
  SizeClass made;
  made.size = size;
  for (std::uint32_t lines = 1;; ++lines) {
    made.data = lines * pm::kLineSize;
    made.blocks = static_cast<std::uint32_t>((kSpanSize - made.data) / size);
    made.words = (made.blocks + 63) / 64;
    if (sizeof(SpanLayout::word) + made.words * 8 <= made.data) break;
  }
  made.reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + size - 1) / size);
  return made;
}

constexpr std::array<SizeClass, kClasses> make_size_classes() {
  std::array<SizeClass, kClasses> classes;
  unsigned next = 0;
  for (std::uint32_t size = 16; size <= kFineLimit; size += 16)
    classes[next++] = make_size_class(size);
  for (std::uint32_t size = kFineLimit + 32; size <= kSmallLimit; size += 32)
    classes[next++] = make_size_class(size);
  for (std::uint32_t blocks = kMaxCoarseBlocks; blocks >= 2; --blocks) {
    classes[next++] = make_size_class(kCoarseSpace / blocks / 64 * 64);
  }
  return classes;
}

inline constexpr std::array<SizeClass, kClasses> kSizeClasses = make_size_classes();

/// The largest size that has a class; larger objects take runs of spans.
inline constexpr std::uint64_t kLargestClass = kSizeClasses.back().size;

/// The class of the smallest blocks that hold `bytes`; 0 < bytes <= kLargestClass.
constexpr unsigned size_class_of(std::uint64_t bytes) noexcept {
  assert(bytes > 0 && bytes <= kLargestClass);
  const auto size = static_cast<std::uint32_t>(bytes);
  if (size <= kFineLimit) return (size + 15) / 16 - 1;
  if (size <= kSmallLimit) return kFineClasses + (size - kFineLimit + 31) / 32 - 1;
  const std::uint32_t rounded = (size + 63) / 64 * 64;
  return kSmallClasses + kMaxCoarseBlocks - kCoarseSpace / rounded;
}

/// Which block of its span begins at or covers `position`, in bytes from the span's start, position
/// >= data.
constexpr std::uint32_t block_index(const SizeClass& size_class, std::uint64_t position) noexcept {
  // Exact for every position in a span: the reciprocal's error, below 2^-32 each, grows to less
  // than one part in size.
  return static_cast<std::uint32_t>((position - size_class.data) * size_class.reciprocal >> 32);
}

/// Whether a block of the class begins at `position`, in bytes from the span's start.
constexpr bool is_block(const SizeClass& size_class, std::uint64_t position) noexcept {
  if (position < size_class.data || position >= kSpanSize) return false;
  const std::uint32_t index = block_index(size_class, position);
  return index < size_class.blocks &&
         size_class.data + std::uint64_t{index} * size_class.size == position;
}

/// The entry that a span of the class has in the span table.
constexpr SpanEntry entry_of(unsigned size_class) noexcept {
  return static_cast<SpanEntry>(size_class + 1);
}

constexpr bool is_class_entry(SpanEntry entry) noexcept { return entry >= 1 && entry <= kClasses; }

/// The first word of a span of the class.
constexpr std::uint64_t span_word(unsigned size_class) noexcept {
  return kSpanMagic | std::uint64_t{entry_of(size_class)} << 16 |
         std::uint64_t{kSizeClasses[size_class].blocks} << 32;
}

/// Bits of bitmap word `word` that belong to no block.
constexpr std::uint64_t tail_bits(const SizeClass& size_class, std::uint32_t word) noexcept {
  const std::uint32_t used = size_class.blocks - word * 64;
  return used >= 64 ? 0 : ~std::uint64_t{0} << used;
}

}  // namespace perdix::detail::alloc
