// Pools that must be mapped at one address.
#include <sys/mman.h>

#include <memory>
#include <utility>

#include "pool/layout.h"
#include "pool/pool_core.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;

constexpr std::uint64_t kAddress = 0x1234'0000'0000;

class PlacementTest : public ::testing::Test {
 protected:
  static PoolOptions at(std::uint64_t address) {
    PoolOptions options = small_options();
    options.address = address;
    return options;
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

/// Whether the process may map there at all: under ThreadSanitizer it may not.
bool mappable(std::uint64_t address) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const got =
      ::mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) ::munmap(got, 4096);
  return got == wanted;
}

TEST_F(PlacementTest, FixedAddressLasts) {
  const auto core = PoolCore::create(path_, small_options());
  EXPECT_FALSE(core->info().fixed_address);
  const std::uint64_t address = core->info().address;
  core->fix_address();
  core->fix_address();
  EXPECT_TRUE(core->info().fixed_address);
  core->close();
  for (int i = 0; i < 3; ++i) {
    const auto again = PoolCore::open(path_, small_options());
    EXPECT_TRUE(again->info().fixed_address);
    EXPECT_EQ(again->info().address, address);
    again->close();
  }
}

TEST_F(PlacementTest, FixedAddressLastsInEachDomain) {
  for (const DomainChoice domain : {DomainChoice::cpu_cache, DomainChoice::page_cache}) {
    const auto path = directory_.file(domain == DomainChoice::cpu_cache ? "cpu" : "page");
    PoolOptions options = small_options();
    options.domain = domain;
    options.durability = Durability::power;
    auto core = PoolCore::create(path, options);
    core->fix_address();
    const std::uint64_t address = core->info().address;
    core.reset();
    EXPECT_EQ(PoolCore::open(path, options)->info().address, address);
  }
}

TEST_F(PlacementTest, TakenAddressIsAClearError) {
  auto core = PoolCore::create(path_, small_options());
  core->fix_address();
  const std::uint64_t address = core->info().address;
  core->close();
  void* const wanted = reinterpret_cast<void*>(address);
  void* const taken =
      ::mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(taken, wanted);
  expect_error(Errc::in_use, "must be mapped at", [&] { PoolCore::open(path_, small_options()); });
  ::munmap(taken, 4096);
  EXPECT_EQ(PoolCore::open(path_, small_options())->info().address, address);
}

TEST_F(PlacementTest, CopyCannotBeOpenBesideItsOriginal) {
  auto core = PoolCore::create(path_, small_options());
  core->fix_address();
  core->close();
  const auto copy = directory_.file("copy.pool");
  std::filesystem::copy_file(path_, copy);
  const auto original = PoolCore::open(path_, small_options());
  expect_error(Errc::in_use, "must be mapped at", [&] { PoolCore::open(copy, small_options()); });
  original->close();
  EXPECT_NO_THROW(PoolCore::open(copy, small_options()));
}

TEST_F(PlacementTest, UserChoosesTheAddress) {
  if (!mappable(kAddress)) GTEST_SKIP() << "the process may not map at the address";
  auto core = PoolCore::create(path_, at(kAddress));
  EXPECT_EQ(core->info().address, kAddress);
  core->close();
  EXPECT_EQ(PoolCore::open(path_, at(2 * kAddress))->info().address, 2 * kAddress);
  core = PoolCore::open(path_, at(kAddress));
  core->fix_address();
  core->close();
  expect_error(Errc::invalid_argument, "dump", [&] { PoolCore::open(path_, at(2 * kAddress)); });
  EXPECT_EQ(PoolCore::open(path_, small_options())->info().address, kAddress);
}

TEST_F(PlacementTest, RefusesMeaninglessAddresses) {
  for (const std::uint64_t address : {std::uint64_t{1}, kAddress + 4096, std::uint64_t{1} << 47})
    expect_error(Errc::invalid_argument, "address", [&] { PoolCore::create(path_, at(address)); });
}

TEST_F(PlacementTest, AddressInTheSuperblockIsBelieved) {
  auto core = PoolCore::create(path_, small_options());
  core->fix_address();
  core->close();
  edit_superblock(path_, [](Superblock& s) { s.address = 0; });
  expect_error(Errc::corrupt, "", [&] { PoolCore::open(path_, small_options()); });
  edit_superblock(path_, [](Superblock& s) { s.address = ~std::uint32_t{0}; });
  expect_error(Errc::corrupt, "", [&] { PoolCore::open(path_, small_options()); });
  if (!mappable(kAddress)) GTEST_SKIP() << "the process may not map at the address";
  edit_superblock(path_, [](Superblock& s) { s.address = kAddress / kAddressUnit; });
  EXPECT_EQ(PoolCore::open(path_, small_options())->info().address, kAddress);
}

TEST_F(PlacementTest, PlacesAreClearOfTheSystems) {
  const std::uint64_t begin = 0x2000'0000'0000, end = 0x5000'0000'0000;
  if (!mappable(begin)) GTEST_SKIP() << "the process may not map at such addresses";
  for (int i = 0; i < 16; ++i) {
    auto core = PoolCore::create(directory_.file(std::to_string(i)), {});
    EXPECT_GE(core->info().address, begin);
    EXPECT_LE(core->info().address + core->info().max_size, end);
  }
}

}  // namespace
}  // namespace perdix::detail::pool
