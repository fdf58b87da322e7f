#include "alloc/size_class.h"

#include <gtest/gtest.h>

namespace perdix::detail::alloc {
namespace {

TEST(SizeClass, EverySizeHasTheSmallestClassThatHoldsIt) {
  for (std::uint64_t bytes = 1; bytes <= kLargestClass; ++bytes) {
    const unsigned size_class = size_class_of(bytes);
    ASSERT_LT(size_class, kClasses);
    ASSERT_GE(kSizeClasses[size_class].size, bytes);
    if (size_class > 0) {
      ASSERT_LT(kSizeClasses[size_class - 1].size, bytes);
    }
  }
}

TEST(SizeClass, SpansAreLaidOutWithinTheirBounds) {
  for (const SizeClass& size_class : kSizeClasses) {
    SCOPED_TRACE(size_class.size);
    EXPECT_EQ(size_class.data % 64, 0U);
    EXPECT_GE(size_class.data, 8 + size_class.words * 8);
    EXPECT_LE(size_class.data, 9 * 64U);
    EXPECT_GE(size_class.words * 64, size_class.blocks);
    EXPECT_LE(size_class.data + size_class.blocks * size_class.size, kSpanSize);
    EXPECT_GT(size_class.data + (size_class.blocks + 1) * size_class.size, kSpanSize);
  }
}

TEST(SizeClass, BlocksAreAlignedAsFarAsTheirSizeAllows) {
  for (const SizeClass& size_class : kSizeClasses) {
    for (const std::uint32_t alignment : {16U, 32U, 64U}) {
      if (size_class.size % alignment != 0) continue;
      for (std::uint32_t i = 0; i < size_class.blocks; ++i) {
        ASSERT_EQ((size_class.data + i * size_class.size) % alignment, 0U);
      }
    }
    EXPECT_EQ(size_class.size % 16, 0U);
  }
}

TEST(SizeClass, LeavesLoseLessThanAHundredth) {
  for (const std::uint64_t bytes : {1056, 1120}) {
    const SizeClass& size_class = kSizeClasses[size_class_of(bytes)];
    EXPECT_EQ(size_class.size, bytes);
    EXPECT_GT(static_cast<double>(size_class.blocks * bytes), 0.99 * kSpanSize) << bytes;
  }
}

TEST(SizeClass, PositionsInASpanAreBlocksOrNot) {
  for (const SizeClass& size_class : kSizeClasses) {
    for (std::uint64_t position = 0; position < kSpanSize; ++position) {
      const bool inside = position >= size_class.data &&
                          position < size_class.data + size_class.blocks * size_class.size;
      const bool begins = inside && (position - size_class.data) % size_class.size == 0;
      ASSERT_EQ(is_block(size_class, position), begins) << size_class.size << " at " << position;
      if (inside) {
        ASSERT_EQ(block_index(size_class, position),
                  (position - size_class.data) / size_class.size);
      }
    }
    EXPECT_FALSE(is_block(size_class, kSpanSize + size_class.data));
  }
}

}  // namespace
}  // namespace perdix::detail::alloc
