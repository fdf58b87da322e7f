#include "alloc/calloc.h"

#include <gtest/gtest.h>

#include "alloc/test_space.h"

namespace perdix::alloc {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class CallocTest : public ::testing::Test {
 protected:
  CallocTest() {
    Calloc::format(space_);
    open();
  }
  ~CallocTest() override { expect_sound(); }

  void open() { calloc_ = std::make_unique<Calloc>(space_); }

  /// As after a crash: what was in DRAM is gone.
  void reopen() {
    calloc_.reset();
    open();
  }

  void expect_sound() {
    CheckReport report;
    calloc_->check(report);
    EXPECT_TRUE(report.ok()) << ::testing::PrintToString(report.problems);
  }

  std::vector<Offset> allocated() const {
    std::vector<Offset> blocks;
    calloc_->for_each_allocated([&](Offset block, std::uint64_t) { blocks.push_back(block); });
    return blocks;
  }

  TestSpace space_{256 * kMiB};
  std::unique_ptr<Calloc> calloc_;
};

TEST_F(CallocTest, ANewPoolIsEmpty) {
  EXPECT_TRUE(allocated().empty());
  EXPECT_EQ(calloc_->bytes_in_spans(), 0U);
  EXPECT_EQ(space_.size(), kChunkSize);
}

TEST_F(CallocTest, BlocksOfAllSizesAreAllocatedAlignedAndApart) {
  std::map<Offset, std::uint64_t> blocks;
  for (std::uint64_t bytes = 0; bytes < 3 * kMiB; bytes += 1 + bytes / 3) {
    const Offset block = allocate(*calloc_, bytes);
    const std::uint64_t size = calloc_->block_size(block);
    EXPECT_GE(size, bytes);
    EXPECT_EQ(size, Calloc::size_for(bytes));
    for (const std::uint64_t alignment : {16, 32, 64}) {
      if (size % alignment == 0) {
        EXPECT_EQ(block % alignment, 0U) << bytes;
      }
    }
    EXPECT_TRUE(calloc_->validate_block(block, bytes));
    EXPECT_FALSE(calloc_->validate_block(block, size + 1));
    EXPECT_FALSE(calloc_->validate_block(block + 8, 1));
    blocks[block] = size;
  }
  Offset end = kLanesEnd;
  for (const auto& [block, size] : blocks) {
    EXPECT_GE(block, end);
    end = block + size;
  }
  EXPECT_LE(end, space_.size());
  std::map<Offset, std::uint64_t> seen;
  calloc_->for_each_allocated([&](Offset block, std::uint64_t size) { seen[block] = size; });
  EXPECT_EQ(seen, blocks);
  reopen();
  seen.clear();
  calloc_->for_each_allocated([&](Offset block, std::uint64_t size) { seen[block] = size; });
  EXPECT_EQ(seen, blocks);
}

}  // namespace
}  // namespace perdix::alloc
