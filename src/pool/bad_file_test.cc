// Every file that is no pool, or no pool any more, is refused with an Error that says so.
#include <sys/stat.h>

#include <array>
#include <string>
#include <vector>

#include "alloc/record.h"
#include "alloc/session.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;

class BadFile : public ::testing::Test {
 protected:
  /// Refused, and left as it is.
  void expect_refused(Errc code, const std::string& part) {
    std::error_code none;
    const std::uint64_t size = std::filesystem::file_size(path_, none);
    const auto before = none ? std::vector<char>{} : read_bytes(path_, 0, size);
    expect_refused_by_error(code, part);
    if (none) return;
    EXPECT_EQ(std::filesystem::file_size(path_), size);
    EXPECT_TRUE(read_bytes(path_, 0, size) == before) << "a refusal has changed the file";
  }
  void expect_refused_by_error(Errc code, const std::string& part) {
    expect_error(code, part, [&] { PoolCore::open(path_, small_options()); });
    expect_error(code, path_.string(), [&] { PoolCore::open(path_, small_options()); });
    expect_error(code, part,
                 [&] { PoolCore::open(path_, small_options(), Purpose::verification); });
  }
  void make_larger_pool() {
    const auto core = PoolCore::create(path_, small_options());
    {
      alloc::Session session = core->allocator().session();
      for (int i = 0; i < 3; ++i) session.reserve(kGrowthUnit);
      core->wait_for_growth();
    }
    core->close();
  }
  static std::uint64_t space_of(const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  void write_file(const std::string& contents) { std::ofstream(path_) << contents; }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(BadFile, Missing) { expect_refused(Errc::not_found, "create the pool"); }

TEST_F(BadFile, Directory) {
  std::filesystem::create_directory(path_);
  expect_refused(Errc::not_a_pool, "regular file");
}

TEST_F(BadFile, Empty) {
  write_file("");
  expect_refused(Errc::not_a_pool, "empty");
}

TEST_F(BadFile, OnlyZeros) {
  write_file("");
  std::filesystem::resize_file(path_, kGrowthUnit);
  expect_refused(Errc::not_a_pool, "creation was interrupted");
}

TEST_F(BadFile, Foreign) {
  write_file("#!/bin/sh\necho this is no pool\n");
  expect_refused(Errc::not_a_pool, "not a pool");
  EXPECT_EQ(std::filesystem::file_size(path_), 31u);
  std::filesystem::resize_file(path_, kGrowthUnit);
  expect_refused(Errc::not_a_pool, "not a pool");
}

TEST_F(BadFile, InterruptedCreation) {
  make_pool(path_);
  Superblock marker{};
  marker.magic = kCreationMagic;
  write_bytes(path_, kSuperblockOffset[0], &marker, sizeof(marker));
  PoolCore::open(path_, small_options())->close();  // the other copy counts: it was complete
  write_bytes(path_, kSuperblockOffset[0], &marker, sizeof(marker));
  write_bytes(path_, kSuperblockOffset[1], &marker, sizeof(marker));
  expect_refused(Errc::not_a_pool, "remove the file and create the pool again");
}

TEST_F(BadFile, Truncated) {
  make_pool(path_);
  // What is missing reads as zeros: a superblock that ends with one is not whole without it.
  for (std::uint8_t i = 0; read_copy(path_, 0).checksum >> 56 != 0; ++i)
    edit_superblock(path_, [i](Superblock& s) {
      s.uuid[i % 8] = static_cast<std::uint8_t>(s.uuid[i % 8] + 1 + i / 8);
    });
  for (const std::uint64_t size :
       {kGrowthUnit - 1, kGrowthUnit / 2, kPoolAreaSize, 2 * kBlockSize, kBlockSize + 1, kBlockSize,
        kBlockSize - 1, std::uint64_t{kSuperblockSize}}) {
    std::filesystem::resize_file(path_, size);
    expect_refused(Errc::truncated, std::to_string(kGrowthUnit));
    EXPECT_EQ(std::filesystem::file_size(path_), size);
  }
  for (const std::uint64_t size : {kSuperblockSize - 1, std::size_t{8}, std::size_t{7}}) {
    std::filesystem::resize_file(path_, size);
    expect_refused(Errc::not_a_pool, "");
  }
}

TEST_F(BadFile, OneSuperblockDamaged) {
  for (int copy : {0, 1}) {
    std::filesystem::remove(path_);
    make_pool(path_);
    const std::array<char, kBlockSize> garbage = [] {
      std::array<char, kBlockSize> bytes{};
      bytes.fill('x');
      return bytes;
    }();
    write_bytes(path_, kSuperblockOffset[copy], garbage.data(), garbage.size());
    const auto core = PoolCore::open(path_, small_options());
    EXPECT_EQ(core->indexes().size(), 2u);
    EXPECT_EQ(read_copy(path_, 0).checksum, read_copy(path_, 1).checksum) << "repaired";
    core->close();
  }
}

TEST_F(BadFile, BothSuperblocksDamaged) {
  make_pool(path_);
  for (int copy : {0, 1}) flip(path_, kSuperblockOffset[copy] + offsetof(Superblock, size), 1);
  expect_refused(Errc::not_a_pool, "both superblocks");
}

TEST_F(BadFile, NewerFormat) {
  make_pool(path_);
  edit_superblock(path_, [](Superblock& s) { s.format_version = kFormatVersion + 1; });
  expect_refused(Errc::newer_format, "format 3");
  // A later format may compute its checksum in another way.
  for (int copy : {0, 1}) flip(path_, kSuperblockOffset[copy] + offsetof(Superblock, checksum), 1);
  expect_refused(Errc::newer_format, "later release");
}

TEST_F(BadFile, FormatOfBeforeTheFirstRelease) {
  make_pool(path_);
  edit_superblock(path_, [](Superblock& s) { s.format_version = 1; });
  expect_refused(Errc::older_format, "format 1");
}

TEST_F(BadFile, UnknownFeature) {
  make_pool(path_);
  edit_superblock(path_, [](Superblock& s) { s.features = std::uint64_t{1} << 63; });
  expect_refused(Errc::newer_format, "0x8000000000000000");
}

/// A release that does not know such blocks refuses the pool from then on.
TEST_F(BadFile, APoolOfBeforePairBlocksHasThemWhenItWasOpened) {
  make_pool(path_);
  edit_superblock(path_, [](Superblock& s) { s.features &= ~kPairBlocks; });
  PoolCore::open(path_, small_options())->close();
  for (int copy : {0, 1}) EXPECT_NE(read_copy(path_, copy).features & kPairBlocks, 0u) << copy;
}

TEST_F(BadFile, SuperblockThatContradictsItself) {
  make_pool(path_);
  const Superblock good = read_copy(path_, 0);
  const auto refused = [&](auto change) {
    edit_superblock(path_, change);
    expect_refused(Errc::corrupt, "superblock");
    edit_superblock(path_, [&](Superblock& s) { s = good; });
  };
  refused([](Superblock& s) { s.size = 0; });
  refused([](Superblock& s) { s.size -= 4096; });
  refused([](Superblock& s) { s.size = s.max_size + kGrowthUnit; });
  refused([](Superblock& s) { s.size = ~std::uint64_t{0}; });
  refused([](Superblock& s) { s.max_size = ~std::uint64_t{0}; });
  refused([](Superblock& s) { s.domain = 0; });
  refused([](Superblock& s) { s.domain = 4; });
  refused([](Superblock& s) { s.durability = 0; });
  refused([](Superblock& s) { s.durability = 3; });
  refused([](Superblock& s) { s.requested_durability = 3; });
  refused([](Superblock& s) { s.cleanness = 0; });
  refused([](Superblock& s) { s.format_version = 0; });
  PoolCore::open(path_, small_options());
}

// Superblocks of an earlier time, as a partial restore leaves them: what lies behind their size is
// evidence, not garbage.
TEST_F(BadFile, SuperblocksOfASmallerPool) {
  PoolCore::create(path_, small_options())->close();
  const auto old = read_bytes(path_, 0, 2 * kBlockSize);
  std::filesystem::remove(path_);
  make_larger_pool();
  ASSERT_GT(std::filesystem::file_size(path_), 3 * kGrowthUnit);
  write_bytes(path_, 0, old.data(), old.size());
  expect_refused(Errc::truncated, "chunks");
}

// Whatever is damaged is found before the file is cut to the size of its superblock, or marked.
TEST_F(BadFile, AllocatorDamagedInAFileThatIsTooLong) {
  make_larger_pool();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + 4096);
  const auto refused = [&](pm::Offset word, std::uint64_t value, Errc code) {
    const auto good = read_struct<std::uint64_t>(path_, word);
    write_bytes(path_, word, &value, sizeof value);
    expect_refused(code, "");
    write_bytes(path_, word, &good, sizeof good);
  };
  const pm::Offset lane = alloc::kLanesOffset + 17 * sizeof(alloc::LaneLayout);
  refused(alloc::kHeaderOffset, 1, Errc::corrupt);
  refused(alloc::kHeaderOffset + offsetof(alloc::HeaderLayout, alloc_num), 0, Errc::corrupt);
  refused(alloc::kHeaderOffset + offsetof(alloc::HeaderLayout, alloc_num), 99, Errc::truncated);
  refused(alloc::chunk_header_offset(0), 7, Errc::corrupt);
  refused(alloc::chunk_header_offset(1), 7, Errc::corrupt);
  refused(lane + offsetof(alloc::LaneLayout, ring) + 8, 12345, Errc::corrupt);
  const alloc::RecordWords good = read_struct<alloc::RecordWords>(path_, lane);
  alloc::Record record;
  record.reserved.push({12345, 0});
  alloc::RecordWords words{};
  alloc::write_record(pm::Persister(pm::Domain::cpu_cache, false), words, record);
  write_bytes(path_, lane, &words, sizeof words);
  expect_refused(Errc::corrupt, "a block at");
  write_bytes(path_, lane, &good, sizeof good);
  EXPECT_NO_THROW(PoolCore::open(path_, small_options())) << "but for all that it is a pool";
}

// A small file may claim any size: only what its allocator has in use gets space.
TEST_F(BadFile, ClaimedSizeIsNotAllocated) {
  make_pool(path_);
  const std::uint64_t size = std::uint64_t{1} << 36;
  std::error_code failed;
  std::filesystem::resize_file(path_, size, failed);
  if (failed) GTEST_SKIP() << "no sparse file of 64 GiB here: " << failed.message();
  edit_superblock(path_, [&](Superblock& s) { s.size = s.max_size = size; });
  for (const Purpose purpose : {Purpose::use, Purpose::verification}) {
    const auto core = PoolCore::open(path_, {}, purpose);
    EXPECT_EQ(core->size(), size);
    core->info();
    core->close();
    EXPECT_LE(space_of(path_), 2 * kGrowthUnit);
  }
  // A damaged one gets none but for the headers.
  const auto damaged = directory_.file("damaged.pool");
  const auto area = read_bytes(path_, 0, 2 * kBlockSize);
  { std::ofstream(damaged, std::ios::binary).write(area.data(), std::streamsize(area.size())); }
  std::filesystem::resize_file(damaged, size);
  expect_error(Errc::corrupt, "", [&] { PoolCore::open(damaged, {}); });
  EXPECT_LE(space_of(damaged), 2 * alloc::kLanesEnd);
}

TEST_F(BadFile, DirectoryEntryDamaged) {
  make_pool(path_);
  const auto damaged = [&](std::size_t slot, std::size_t at) {
    const pm::Offset offset = entry_offset(slot) + at;
    flip(path_, offset, 0x10);
    expect_refused(Errc::corrupt, "entry " + std::to_string(slot));
    flip(path_, offset, 0x10);
  };
  damaged(0, 0);    // length of the name
  damaged(1, 3);    // name
  damaged(1, 100);  // padding of the name
  damaged(0, offsetof(DirectoryEntry, engine) + 1);
  damaged(0, offsetof(DirectoryEntry, value_kind));
  damaged(1, offsetof(DirectoryEntry, checksum));
  damaged(1, offsetof(DirectoryEntry, state));
  damaged(1023, offsetof(DirectoryEntry, state) + 7);  // a free one
  EXPECT_EQ(PoolCore::open(path_, small_options())->indexes().size(), 2u);
}

TEST_F(BadFile, DirectoryEntryWithoutSense) {
  make_pool(path_);
  const auto good = read_struct<DirectoryEntry>(path_, entry_offset(0));
  const auto refused = [&](auto change) {
    DirectoryEntry entry = good;
    change(entry);
    entry.checksum = checksum_of(entry);
    write_bytes(path_, entry_offset(0), &entry, sizeof(entry));
    expect_refused(Errc::corrupt, "entry 0");
  };
  refused([](DirectoryEntry& e) { e.name_size = 0; });
  refused([](DirectoryEntry& e) { e.name_size = 128; });
  refused([](DirectoryEntry& e) { e.engine_size = 0; });
  refused([](DirectoryEntry& e) { e.engine_size = 32; });
  refused([](DirectoryEntry& e) { e.key_kind = 0; });
  refused([](DirectoryEntry& e) { e.value_kind = 3; });
  refused([](DirectoryEntry& e) { e.model = std::uint8_t(DataModel::container) + 1; });
  refused([](DirectoryEntry& e) { e.model = 255; });
}

TEST_F(BadFile, TwoIndexesOfOneName) {
  make_pool(path_);
  const auto entry = read_struct<DirectoryEntry>(path_, entry_offset(0));
  write_bytes(path_, entry_offset(1), &entry, sizeof(entry));
  expect_refused(Errc::corrupt, "'first'");
}

}  // namespace
}  // namespace perdix::detail::pool
