#include "testing/linearizability/retired_blocks.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace perdix::testing {
namespace {

class RetiredBlocksTest : public ::testing::Test {
 protected:
  std::byte* at(std::size_t i) { return memory_.data() + i; }

  std::array<std::byte, 256> memory_{};
  RetiredBlocks blocks_;
};

TEST_F(RetiredBlocksTest, ASectionReadsBlocksRetiredSinceItBegan) {
  blocks_.begin_section();
  blocks_.retired(at(64), 32);
  EXPECT_TRUE(blocks_.may_read(at(64), 8));
}

TEST_F(RetiredBlocksTest, ASectionMayNotReadBlocksRetiredBefore) {
  blocks_.retired(at(64), 32);
  blocks_.retired(at(128), 16);
  blocks_.begin_section();
  blocks_.retired(at(160), 16);
  EXPECT_FALSE(blocks_.may_read(at(64), 8));
  EXPECT_FALSE(blocks_.may_read(at(95), 1));
  EXPECT_FALSE(blocks_.may_read(at(56), 16)) << "it reaches into the block";
  EXPECT_FALSE(blocks_.may_read(at(128), 64)) << "only the first of two was retired before";
  EXPECT_TRUE(blocks_.may_read(at(56), 8));
  EXPECT_TRUE(blocks_.may_read(at(96), 32));
  EXPECT_TRUE(blocks_.may_read(at(160), 16));
}

TEST_F(RetiredBlocksTest, ABlockThatIsUsedAgainMayBeRead) {
  blocks_.retired(at(64), 32);
  blocks_.begin_section();
  blocks_.reclaimed(at(64));
  EXPECT_TRUE(blocks_.may_read(at(64), 8));
}

TEST_F(RetiredBlocksTest, EachThreadHasItsOwnSection) {
  blocks_.begin_section();
  blocks_.retired(at(64), 32);
  std::thread([&] {
    EXPECT_TRUE(blocks_.may_read(at(64), 8)) << "it is in no section";
    blocks_.begin_section();
    EXPECT_FALSE(blocks_.may_read(at(64), 8));
  }).join();
  EXPECT_TRUE(blocks_.may_read(at(64), 8));
}

}  // namespace
}  // namespace perdix::testing
