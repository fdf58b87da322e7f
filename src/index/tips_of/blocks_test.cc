// Blocks without a container, and pages by themselves.
#include "index/tips_of/blocks.h"

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "index/tips_of/size_class.h"
#include "index/tips_of/test_containers.h"
#include "index/tips_of/tips_of.h"
#include "pool/pool_core.h"
#include "util/random.h"

namespace perdix::detail::index::tips_of {
namespace {

TEST(SizeClassTest, AreAsLargeAsAskedForAndNotMuchLarger) {
  for (std::uint64_t bytes = 1; bytes < 100'000; ++bytes) {
    const std::uint64_t size = size_of_class(class_of(bytes));
    ASSERT_GE(size, bytes);
    ASSERT_LE(size, bytes + std::max<std::uint64_t>(15, bytes / 4)) << bytes;
    ASSERT_EQ(class_of(size), class_of(bytes));
    if (bytes % 16 == 0) {
      const std::uint64_t within = size_of_class(largest_class_within(bytes));
      ASSERT_LE(within, bytes);
      ASSERT_TRUE(within == bytes || size_of_class(largest_class_within(bytes) + 1) > bytes);
    }
  }
  EXPECT_EQ(size_of_class(class_of(kMaxBlock)), kMaxBlock);
  EXPECT_EQ(class_of(kMaxBlock), kClasses - 1);
}

class BlocksTest : public TipsOfTest {
 protected:
  using Bytes = std::vector<char, Allocator<char>>;
};

/// A container of which only the memory is used.
TEST_F(BlocksTest, NeverOverlapAndAreUsedAgain) {
  const Pool pool = open();
  TipsOf<Bytes> opened(pool, "c");
  util::Random random(3);
  std::map<char*, std::uint64_t> live;
  for (unsigned round = 0; round < 30; ++round) {
    opened.write([&](Bytes&) {
      for (unsigned i = 0; i < 100; ++i) {
        if (random.one_in(2) && !live.empty()) {
          const auto victim = std::next(live.begin(), static_cast<long>(random.below(live.size())));
          for (std::uint64_t n = 0; n < victim->second; ++n)
            ASSERT_EQ(victim->first[n], static_cast<char>(victim->second));
          deallocate(victim->first, victim->second);
          live.erase(victim);
          continue;
        }
        const std::uint64_t bytes = random.one_in(20) ? random.below(50'000) : random.below(300);
        auto* const block = static_cast<char*>(allocate(bytes));
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0U);
        const auto next = live.upper_bound(block);
        ASSERT_TRUE(next == live.end() || block + bytes <= next->first);
        ASSERT_TRUE(next == live.begin() ||
                    std::prev(next)->first + std::prev(next)->second <= block);
        std::memset(block, static_cast<int>(bytes), bytes);
        live[block] = bytes;
      }
    });
    const CheckReport report = opened.check();
    ASSERT_TRUE(report.ok()) << report.problems.front();
  }
  opened.write([&](Bytes&) {
    for (const auto& [block, bytes] : live) deallocate(block, bytes);
  });
  const TipsOfStats before = opened.stats();
  EXPECT_EQ(before.live_bytes, 0U);
  opened.write([](Bytes&) {
    for (unsigned i = 0; i < 100; ++i) deallocate(allocate(100), 100);
  });
  EXPECT_EQ(opened.stats().pages, before.pages);
}

TEST_F(BlocksTest, AreRefusedAboveTheLargestSize) {
  const Pool pool = open();
  TipsOf<Bytes> opened(pool, "c");
  EXPECT_EQ(error_of([&] { opened.write([](Bytes&) { allocate(kMaxBlock + 1); }); }),
            Errc::too_large);
  EXPECT_EQ(error_of([&] { opened.write([](Bytes&) { allocate(std::uint64_t{1} << 31); }); }),
            Errc::out_of_space);
  EXPECT_TRUE(opened.check().ok());
}

/// Their contents in the file are not trusted.
TEST_F(BlocksTest, DamageIsNoticed) {
  for (const unsigned what : {0U, 1U, 2U, 3U}) {
    std::filesystem::remove(path_);
    {
      const Pool pool = open();
      TipsOf<Bytes>(pool, "c").write([](Bytes& bytes) { bytes.resize(200'000); });
      const auto core = pool.core();
      auto handle = core->open_existing_index("c");
      Header& header = *core->at<Header>(handle->root());
      Extent& extent = *core->at<Extent>(header.first);
      switch (what) {
        case 0: header.magic = 0; break;
        case 1: header.first = 12345; break;
        case 2: extent.next = header.first; break;
        default: extent.pages = 1'000'000; break;
      }
    }
    const Pool pool = open();
    EXPECT_EQ(error_of([&] { TipsOf<Bytes>(pool, "c"); }), Errc::corrupt) << what;
    EXPECT_FALSE(pool.check().ok()) << what;
  }
}

TEST_F(BlocksTest, DamageOfTheArenaIsAProblem) {
  for (const unsigned what : {0U, 1U, 2U}) {
    std::filesystem::remove(path_);
    const Pool pool = open();
    TipsOf<Bytes>(pool, "c").write([](Bytes& bytes) { bytes.resize(1000), bytes.shrink_to_fit(); });
    {
      Table table(*pool.core()->open_existing_index("c"));
      auto& arena =
          *reinterpret_cast<Arena*>(static_cast<std::byte*>(table.container()) - kObjectAt);
      switch (what) {
        case 0: arena.live_bytes += 16; break;
        case 1: arena.free[5] = pool.info().size; break;
        default: arena.extent = 50; break;
      }
    }
    EXPECT_FALSE(pool.check().ok()) << what;
  }
}

TEST_F(BlocksTest, ADroppedContainerLeavesNothing) {
  Pool pool = open();
  const std::uint64_t before = pool.info().allocated;
  for (unsigned i = 0; i < 3; ++i) {
    TipsOf<Bytes>(pool, "c").write([](Bytes& bytes) { bytes.resize(2'000'000); });
    EXPECT_GT(pool.info().allocated, before);
    pool.drop("c");
    EXPECT_EQ(pool.info().allocated, before);
  }
  expect_sound(pool);
}

TEST_F(BlocksTest, ANewContainerIsEmptyWhereADroppedOneWas) {
  Pool pool = open();
  for (unsigned i = 0; i < 3; ++i) {
    {
      TipsOf<Bytes> opened(pool, "c");
      EXPECT_EQ(opened.size(), 0U);
      opened.write([](Bytes& bytes) { bytes.resize(100); });
    }
    pool.drop("c");
    pool.core()->allocator().reclaim();
  }
  expect_sound(pool);
}

}  // namespace
}  // namespace perdix::detail::index::tips_of
