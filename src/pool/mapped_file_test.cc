// The file of a pool without the pool: its size, its end, and what it says when it is lost.
#include "pool/mapped_file.h"

#include <gtest/gtest.h>

#include "pm/no_fork.h"
#include "pm/test_files.h"
#include "pool/layout.h"
#include "pool/placement.h"
#include "util/test_directory.h"

namespace perdix::detail::pool {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    file_.format(kGrowthUnit, {.max_size = 3 * kGrowthUnit}, address_seed(random_uuid()));
  }

  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::filesystem::path path_ = directory_.file("test.pool");
  MappedFile file_{current_boot_id(), pm::File::create(path_)};
};

TEST_F(MappedFileTest, HasTheSizeThatWasSet) {
  file_.take(2 * kGrowthUnit);
  EXPECT_EQ(file_.size(), kGrowthUnit) << "it does not count yet";
  file_.set_size(2 * kGrowthUnit);
  std::byte& last = file_.base()[2 * kGrowthUnit - 1];
  last = std::byte{7};
  EXPECT_EQ(file_.size(), 2 * kGrowthUnit);
  EXPECT_EQ(*file_.area<std::byte>(2 * kGrowthUnit - 1), last);
}

TEST_F(MappedFileTest, RefusesToExceedItsLimit) {
  file_.require_limit(3 * kGrowthUnit);
  testing_files::expect_error(Errc::out_of_space, "its max_size is",
                              [&] { file_.require_limit(3 * kGrowthUnit + 1); });
}

TEST_F(MappedFileTest, CutsOffWhatWasNotTakenWhenItCloses) {
  file_.publish();
  file_.take(2 * kGrowthUnit);
  file_.end_threads();
  file_.close();
  EXPECT_EQ(std::filesystem::file_size(path_), kGrowthUnit);
}

TEST_F(MappedFileTest, DescribesAnOpeningThatIsUnclean) {
  Superblock superblock{};
  file_.set_opened(superblock);
  EXPECT_TRUE(unclean(superblock));
  EXPECT_TRUE(file_.origin().same_file(superblock) && file_.origin().same_run(superblock));
  EXPECT_EQ(superblock.max_size, 3 * kGrowthUnit);
  PoolInfo info;
  file_.describe(info);
  EXPECT_EQ(info.max_size, superblock.max_size);
  EXPECT_EQ(info.path, path_);
}

}  // namespace
}  // namespace perdix::detail::pool
