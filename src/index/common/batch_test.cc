// How much a scan reads at a time, and what becomes of it.
#include "index/common/batch.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/value_codec.h"
#include "pool/test_pool.h"
#include "util/test_directory.h"

namespace perdix::detail::index {
namespace {

class BatchTest : public testing::Test {
 protected:
  static constexpr unsigned kRoom = 256;

  /// Adds `count` pairs and copies them, as far as `limit` allows.
  void fill(unsigned count, std::size_t limit) {
    batch_.clear();
    for (unsigned i = 0; i < count; ++i) batch_.add(10 + i, i);
    batch_.copy_pairs(*core_, values_, limit);
  }

  std::vector<std::uint64_t> keys() const {
    std::vector<std::uint64_t> shown;
    batch_.copied().for_each<std::uint64_t>(
        [&](std::uint64_t key, std::uint64_t) { return shown.push_back(key), true; });
    return shown;
  }

  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::filesystem::path path_ = directory_.file("test.pool");
  const std::shared_ptr<pool::PoolCore> core_ =
      pool::PoolCore::create(path_, pool::small_options());
  const ValueCodec values_{*core_, Kind::u64};
  Batch<std::uint64_t, kRoom> batch_;
};

TEST_F(BatchTest, ReadsNoMoreThanTheLimit) {
  for (const unsigned limit : {1u, 5u, 64u, 200u}) EXPECT_EQ(batch_.worth_reading(limit), limit);
  EXPECT_EQ(batch_.worth_reading(1000), kRoom - 1) << "and one more";
}

TEST_F(BatchTest, ReadsAsManyAsWereShownBeforeAndHasRoomForOneMore) {
  constexpr std::size_t kNoEnd = ~std::size_t{0} - 1000;
  EXPECT_EQ(batch_.worth_reading(kNoEnd), 64u);
  fill(65, 64);
  EXPECT_EQ(batch_.worth_reading(kNoEnd), 64u);
  fill(65, 64);
  EXPECT_EQ(batch_.worth_reading(kNoEnd), 128u);
  EXPECT_EQ(batch_.worth_reading(3), 3u);
  fill(129, 128);
  EXPECT_EQ(batch_.worth_reading(kNoEnd), kRoom - 1);
}

TEST_F(BatchTest, TakesBackWhatALeafAddedThatHasChanged) {
  batch_.clear();
  batch_.add(1, 1);
  const unsigned before = batch_.added();
  batch_.add(2, 2);
  batch_.add(7, 7);
  batch_.truncate(before);
  batch_.add(5, 5);
  batch_.copy_pairs(*core_, values_, 10);
  EXPECT_EQ(keys(), (std::vector<std::uint64_t>{1, 5}));
  EXPECT_TRUE(batch_.complete());
}

}  // namespace
}  // namespace perdix::detail::index
