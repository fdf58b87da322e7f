// Growth of a pool, and the disk that fills up under it.
#include "pool/growth.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "alloc/session.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::expect_error;
using testing_files::MountedTmpfs;
using testing_files::TempDirectory;
using testing_files::true_in_child;

/// Bytes of addresses that the process has.
rlim_t addresses_in_use() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

class GrowthTest : public ::testing::Test {
 protected:
  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(GrowthTest, KeepsContentsAndAddress) {
  auto core = PoolCore::create(path_, small_options());
  std::byte* const base = core->base();
  auto* const word = core->at<std::uint64_t>(kGrowthUnit - 8);
  core->pm().store(*word, 42);
  for (std::uint64_t size = 2 * kGrowthUnit; size <= 5 * kGrowthUnit; size += kGrowthUnit) {
    core->extend(size);
    EXPECT_EQ(core->size(), size);
    EXPECT_EQ(core->base(), base);
    auto* const last = core->at<std::uint64_t>(size - 8);
    EXPECT_EQ(*last, 0u);
    core->pm().store(*last, size);
  }
  EXPECT_EQ(*word, 42u);
  core->close();
  core = PoolCore::open(path_, small_options());
  EXPECT_EQ(core->size(), 5 * kGrowthUnit);
  EXPECT_EQ(*core->at<std::uint64_t>(3 * kGrowthUnit - 8), 3 * kGrowthUnit);
}

TEST_F(GrowthTest, RoundsUpAndNeverShrinks) {
  const auto core = PoolCore::create(path_, small_options());
  core->extend(kGrowthUnit + 1);
  EXPECT_EQ(core->size(), 2 * kGrowthUnit);
  core->extend(1);
  EXPECT_EQ(core->size(), 2 * kGrowthUnit);
}

TEST_F(GrowthTest, OneUnitIsMadeReadyAheadOfUse) {
  auto core = PoolCore::create(path_, small_options());
  core->wait_for_growth();
  EXPECT_EQ(std::filesystem::file_size(path_), kGrowthUnit) << "a pool that doesn't grow";
  core->extend(2 * kGrowthUnit);
  core->wait_for_growth();
  EXPECT_EQ(std::filesystem::file_size(path_), 3 * kGrowthUnit);
  EXPECT_EQ(core->size(), 2 * kGrowthUnit);
  core->extend(3 * kGrowthUnit);
  core->wait_for_growth();
  EXPECT_EQ(std::filesystem::file_size(path_), 4 * kGrowthUnit);
  core->close();
  EXPECT_EQ(std::filesystem::file_size(path_), 3 * kGrowthUnit) << "what nobody took goes back";
}

TEST_F(GrowthTest, StopsAtMaxSize) {
  const auto core = PoolCore::create(path_, small_options());
  const std::uint64_t max = small_options().max_size;
  expect_error(Errc::out_of_space, "max_size", [&] { core->extend(max + 1); });
  EXPECT_EQ(core->size(), kGrowthUnit);
  core->extend(max);
  core->wait_for_growth();
  EXPECT_EQ(std::filesystem::file_size(path_), max);
  expect_error(Errc::out_of_space, "max_size", [&] { core->extend(~std::uint64_t{0}); });
  EXPECT_EQ(core->size(), max);
}

TEST_F(GrowthTest, MaxSizeIsRememberedUnlessAskedOtherwise) {
  PoolOptions options = small_options();
  options.max_size = kGrowthUnit;
  PoolCore::create(path_, options)->close();
  {
    const auto core = PoolCore::open(path_, {});
    EXPECT_EQ(core->info().max_size, kGrowthUnit);
    expect_error(Errc::out_of_space, "max_size", [&] { core->extend(2 * kGrowthUnit); });
  }
  {
    const auto core = PoolCore::open(path_, small_options());
    core->extend(2 * kGrowthUnit);
    EXPECT_EQ(core->size(), 2 * kGrowthUnit);
  }
  EXPECT_EQ(PoolCore::open(path_, {})->info().max_size, small_options().max_size);
  expect_error(Errc::invalid_argument, "smaller than its size",
               [&] { PoolCore::open(path_, options); });
  EXPECT_EQ(PoolCore::open(path_, {})->info().max_size, small_options().max_size);
}

TEST_F(GrowthTest, MaxSizeIsOneTebibyteAtFirst) {
  PoolCore::create(path_, {})->close();
  EXPECT_EQ(read_copy(path_, 0).max_size, std::uint64_t{1} << 40);
}

// A limit of addresses makes an opening do with less, unless it asks for a size.
TEST_F(GrowthTest, FewAddressesAreEnoughForASmallPool) {
  PoolCore::create(path_, {})->close();
  EXPECT_TRUE(true_in_child([&] {
    const rlim_t addresses = addresses_in_use() + (rlim_t{8} << 30);  // sanitizers have many
    const rlimit limit{addresses, addresses};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return false;
    PoolOptions options;
    options.max_size = std::uint64_t{1} << 40;
    expect_error(Errc::out_of_space, "ulimit -v", [&] { PoolCore::open(path_, options); });
    const auto core = PoolCore::open(path_, {});
    const std::uint64_t most = core->info().max_size;
    EXPECT_GE(most, 2 * kGrowthUnit);
    EXPECT_LT(most, limit.rlim_cur);
    core->extend(2 * kGrowthUnit);
    expect_error(Errc::out_of_space, "ulimit -v", [&] { core->extend(most + kGrowthUnit); });
    return !HasFailure();
  }));
  EXPECT_EQ(PoolCore::open(path_, {})->info().max_size, std::uint64_t{1} << 40)
      << "what one process lacked is not remembered";
}

// What a crash may leave: space that the superblock doesn't count yet.
TEST_F(GrowthTest, UnusedSpaceIsCutOffAndComesBackZeroed) {
  PoolCore::create(path_, small_options())->close();
  std::filesystem::resize_file(path_, 2 * kGrowthUnit + 12345);
  const char garbage = 1;
  write_bytes(path_, 2 * kGrowthUnit, &garbage, 1);
  write_bytes(path_, kGrowthUnit + 7, &garbage, 1);
  const auto core = PoolCore::open(path_, small_options());
  EXPECT_EQ(std::filesystem::file_size(path_), kGrowthUnit);
  core->extend(2 * kGrowthUnit);
  EXPECT_EQ(*core->at<char>(kGrowthUnit + 7), 0);
}

TEST_F(GrowthTest, HolesAreFilledWhenOpened) {
  PoolCore::create(path_, small_options())->close();
  const auto copy = directory_.file("sparse.pool");
  const auto area = read_bytes(path_, 0, 2 * kPoolAreaSize);
  { std::ofstream(copy, std::ios::binary).write(area.data(), std::streamsize(area.size())); }
  std::filesystem::resize_file(copy, kGrowthUnit);
  const auto core = PoolCore::open(copy, small_options());
  struct stat status {};
  ASSERT_EQ(::stat(copy.c_str(), &status), 0);
  EXPECT_GE(static_cast<std::uint64_t>(status.st_blocks) * 512, kGrowthUnit);
}

/// A closed pool of 8 units, of which only the first is in use, copied without its zeros.
void make_sparse_copy(const std::filesystem::path& path, const std::filesystem::path& copy) {
  PoolOptions options = small_options();
  options.initial_size = 8 * kGrowthUnit;
  PoolCore::create(path, options)->close();
  const auto area = read_bytes(path, 0, 2 * kPoolAreaSize);
  { std::ofstream(copy, std::ios::binary).write(area.data(), std::streamsize(area.size())); }
  std::filesystem::resize_file(copy, 8 * kGrowthUnit);
}

std::uint64_t space_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

// Unused space stays a hole until it is taken into use.
TEST_F(GrowthTest, HolesOfFreeChunksAreFilledWhenTheyAreTaken) {
  const auto copy = directory_.file("sparse.pool");
  make_sparse_copy(path_, copy);
  const auto core = PoolCore::open(copy, small_options());
  EXPECT_LT(space_of(copy), 2 * kGrowthUnit);
  alloc::Session session = core->allocator().session();
  const pm::Offset large = session.reserve(3 * kGrowthUnit);
  EXPECT_GE(space_of(copy), 5 * kGrowthUnit);
  EXPECT_LT(space_of(copy), 7 * kGrowthUnit);
  std::memset(core->at<std::byte>(large), 1, 3 * kGrowthUnit);
}

TEST_F(GrowthTest, RefusesHolesThatCannotBeFilled) {
  TempDirectory mounted(testing_files::memory_directory());
  const MountedTmpfs small(mounted.path(), "size=56m");
  if (!small) GTEST_SKIP() << "may not mount a tmpfs";
  const auto copy = mounted.file("sparse.pool");
  make_sparse_copy(path_, copy);
  const auto core = PoolCore::open(copy, small_options());
  {
    alloc::Session session = core->allocator().session();
    expect_error(Errc::out_of_space, "holes", [&] { session.reserve(4 * kGrowthUnit); });
  }
  {
    alloc::Session session = core->allocator().session();
    const pm::Offset object = session.reserve(kGrowthUnit / 2);
    std::memset(core->at<std::byte>(object), 1, kGrowthUnit / 2);
  }
  CheckReport report;
  core->allocator().check(report);
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

// Space is made immediately, its huge pages in the background: they take a second per GiB and more.
TEST_F(GrowthTest, ALargePoolIsAllocatedAtOnce) {
  PoolOptions options;
  options.initial_size = options.max_size = 8 * kGrowthUnit;
  const auto core = PoolCore::create(path_, options);
  EXPECT_GE(space_of(path_), 8 * kGrowthUnit);
  core->wait_for_growth();
  const auto* const bytes = core->at<std::uint64_t>(2 * kGrowthUnit);
  for (std::uint64_t i = 0; i < 6 * kGrowthUnit / 8; i += 512) ASSERT_EQ(bytes[i], 0u);
}

TEST_F(GrowthTest, ThreadsMayAskAtOnce) {
  const auto core = PoolCore::create(path_, small_options());
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 2; i <= 8; ++i) {
        core->extend(i * kGrowthUnit);
        ASSERT_GE(core->size(), i * kGrowthUnit);
        core->pm().store(*core->at<std::uint64_t>(i * kGrowthUnit - 8 * (t + 1)), t);
        core->prepare((i - 1) * kGrowthUnit, kGrowthUnit);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(core->size(), 8 * kGrowthUnit);
}

/// What must hold when there is space for one unit, but not for two.
void fill_up(const std::filesystem::path& path, const std::filesystem::path& other) {
  const auto core = PoolCore::create(path, small_options());
  auto* const last = core->at<std::uint64_t>(kGrowthUnit - 8);
  for (int attempt = 0; attempt < 3; ++attempt) {
    expect_error(Errc::out_of_space, "free some space", [&] { core->extend(2 * kGrowthUnit); });
    EXPECT_EQ(core->size(), kGrowthUnit);
    EXPECT_EQ(std::filesystem::file_size(path), kGrowthUnit);
  }
  core->pm().publish(*last, 7);
  core->open_index("orders", "sptree", Kind::u64, Kind::u64);
  core->close();
  EXPECT_EQ(PoolCore::open(path, small_options())->indexes().size(), 1u);
  PoolOptions large = small_options();
  large.initial_size = 2 * kGrowthUnit;
  expect_error(Errc::out_of_space, "free some space", [&] { PoolCore::create(other, large); });
  EXPECT_FALSE(std::filesystem::exists(other));
  expect_error(Errc::out_of_space, "free some space",
               [&] { PoolCore::create(pm::File::create_in_place(other), large); });
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(GrowthTest, LimitOfFileSizesIsAnError) {
  EXPECT_TRUE(true_in_child([&] {  // the limit is the process's
    const rlimit limit{kGrowthUnit + 4096, kGrowthUnit + 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    fill_up(path_, directory_.file("other.pool"));
    return !HasFailure();
  }));
}

TEST_F(GrowthTest, FullDiskIsAnErrorAndNothingChanges) {
  const MountedTmpfs small(directory_.path(), "size=24m");
  if (!small)
    GTEST_SKIP() << "may not mount a tmpfs; LimitOfFileSizesIsAnError covers the same errors";
  fill_up(path_, directory_.file("other.pool"));
}

TEST_F(GrowthTest, DiskThatHasSpaceAgainIsUsed) {
  MountedTmpfs small(directory_.path(), "size=24m");
  if (!small) GTEST_SKIP() << "may not mount a tmpfs";
  const auto core = PoolCore::create(path_, small_options());
  expect_error(Errc::out_of_space, "", [&] { core->extend(2 * kGrowthUnit); });
  ASSERT_TRUE(small.change("size=64m"));
  core->extend(2 * kGrowthUnit);
  EXPECT_EQ(core->size(), 2 * kGrowthUnit);
  core->wait_for_growth();
}

// The thread that prepares the next unit finds no space; that must not disturb other threads.
TEST_F(GrowthTest, FullDiskAheadOfUseIsNoError) {
  const MountedTmpfs small(directory_.path(), "size=40m");
  if (!small) GTEST_SKIP() << "may not mount a tmpfs";
  const auto core = PoolCore::create(path_, small_options());
  core->extend(2 * kGrowthUnit);
  core->wait_for_growth();
  EXPECT_EQ(std::filesystem::file_size(path_), 2 * kGrowthUnit);
  expect_error(Errc::out_of_space, "free some space", [&] { core->extend(3 * kGrowthUnit); });
  core->pm().publish(*core->at<std::uint64_t>(2 * kGrowthUnit - 8), 1);
  core->close();
}

}  // namespace
}  // namespace perdix::detail::pool
