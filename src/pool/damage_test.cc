// Crashes and damage in the pool's own area: whatever its bytes are, the result is a pool or an
// Error, and what a torn write leaves is the old or the new state.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "pool/test_pool.h"
#include "util/random.h"

namespace perdix::detail::pool {
namespace {

using testing_files::TempDirectory;

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("PERDIX_TEST_SEED");
    const std::uint64_t chosen =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::cout << "PERDIX_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return value;
}

/// Opens, and uses what can be used. An Error is the other right answer.
std::optional<Errc> try_pool(const std::filesystem::path& path) {
  try {
    const auto core = PoolCore::open(path, small_options(), Purpose::verification);
    for (const IndexInfo& info : core->indexes()) core->open_existing_index(info.name);
    core->dropping();
    core->open_index("added", "sptree", Kind::u64, Kind::u64);
    core->finish_drop(core->begin_drop("added"));
    core->close();
    return std::nullopt;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return error.code();
  }
}

class Damage : public ::testing::Test {
 protected:
  Damage() {
    make_pool(path_);
    const auto core = PoolCore::open(path_, small_options());
    core->begin_drop("second");
    core->close();
    area_ = read_bytes(path_, 0, kPoolAreaSize);
  }
  void restore() { write_bytes(path_, 0, area_.data(), kDirectoryOffset + 4096); }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  std::vector<char> area_;
};

TEST_F(Damage, AnyByteOfOneSuperblock) {
  for (int copy : {0, 1}) {
    for (std::size_t i = 0; i < kSuperblockSize; ++i) {
      restore();
      flip(path_, kSuperblockOffset[copy] + i, 0xff);
      ASSERT_EQ(try_pool(path_), std::nullopt) << "byte " << i << " of copy " << copy;
    }
  }
}

TEST_F(Damage, AnyByteOfBothSuperblocks) {
  for (std::size_t i = 0; i < kSuperblockSize; ++i) {
    restore();
    for (int copy : {0, 1}) flip(path_, kSuperblockOffset[copy] + i, 0x40);
    const auto result = try_pool(path_);
    const bool version =
        i >= offsetof(Superblock, format_version) && i < offsetof(Superblock, format_version) + 4;
    ASSERT_EQ(result, version ? Errc::newer_format : Errc::not_a_pool) << "byte " << i;
  }
}

TEST_F(Damage, AnyByteOfTheFirstEntries) {
  for (std::size_t slot : {0, 1, 2}) {  // live, dropping, free
    for (std::size_t i = 0; i < sizeof(DirectoryEntry); ++i) {
      restore();
      flip(path_, entry_offset(slot) + i, 0x01);
      const bool state = i >= offsetof(DirectoryEntry, state) && i < offsetof(DirectoryEntry, root);
      const bool immutable = slot < 2 && i < offsetof(DirectoryEntry, state);
      // A claim of more than a pool can have; it was 0.
      const bool claim = slot < 2 && i > offsetof(DirectoryEntry, claim) + 4 &&
                         i < offsetof(DirectoryEntry, claim) + 8;
      const bool refused = state || immutable || claim;
      const auto expected = refused ? std::optional(Errc::corrupt) : std::nullopt;
      ASSERT_EQ(try_pool(path_), expected) << "byte " << i << " of entry " << slot;
    }
  }
}

TEST_F(Damage, AnyBitOfTheDirectory) {
  const pm::Persister persister(pm::Domain::cpu_cache, false);
  const auto entries = std::make_unique<DirectoryEntry[]>(kDirectoryEntries);
  std::memcpy(entries.get(), area_.data() + kDirectoryOffset,
              kDirectoryEntries * sizeof(DirectoryEntry));
  const Directory directory(entries.get(), persister, "test");
  auto* const bytes = reinterpret_cast<std::uint8_t*>(entries.get());
  const auto refused = [&] {
    try {
      directory.check();
      return false;
    } catch (const Error& error) {
      return error.code() == Errc::corrupt;
    }
  };
  util::Random random(seed());
  for (std::size_t i = 0; i < kDirectoryEntries * sizeof(DirectoryEntry); ++i) {
    const std::size_t slot = i / sizeof(DirectoryEntry), at = i % sizeof(DirectoryEntry);
    const bool state = at >= offsetof(DirectoryEntry, state) && at < offsetof(DirectoryEntry, root);
    const bool immutable = slot < 2 && at < offsetof(DirectoryEntry, state);
    const auto bit = static_cast<std::uint8_t>(1u << random.below(8));
    bytes[i] = static_cast<std::uint8_t>(bytes[i] ^ bit);
    const bool claim = slot < 2 && entries[slot].claim > kMaxPoolSize / alloc::kSpanSize;
    ASSERT_EQ(refused(), state || immutable || claim) << "byte " << i;
    bytes[i] = static_cast<std::uint8_t>(bytes[i] ^ bit);
  }
  EXPECT_FALSE(refused());
}

TEST_F(Damage, RandomBytes) {
  util::Random random(seed());
  std::size_t opened = 0;
  constexpr std::size_t kRounds = 2000;
  for (std::size_t round = 0; round < kRounds; ++round) {
    restore();
    const std::uint64_t changes = 1 + random.below(64);
    for (std::uint64_t i = 0; i < changes; ++i) {
      const bool directory = random.one_in(2);
      const pm::Offset at =
          directory ? kDirectoryOffset + random.below(1024) : random.below(3 * kBlockSize);
      const char byte = static_cast<char>(random());
      write_bytes(path_, at, &byte, 1);
    }
    opened += try_pool(path_) == std::nullopt ? 1 : 0;
  }
  EXPECT_GT(opened, 0u);
  EXPECT_LT(opened, kRounds);
}

// Superblocks with right checksums and any contents: what a forger would write.
TEST_F(Damage, RandomSuperblocksWithRightChecksums) {
  util::Random random(seed());
  for (int round = 0; round < 2000; ++round) {
    restore();
    edit_superblock(path_, [&](Superblock& s) {
      auto* const bytes = reinterpret_cast<std::uint8_t*>(&s);
      const std::uint64_t changes = 1 + random.below(4);
      for (std::uint64_t i = 0; i < changes; ++i)
        bytes[random.below(kSuperblockSize)] = static_cast<std::uint8_t>(random());
      // Sizes that would be found in the file take it to the mapping.
      if (random.one_in(2)) s.size = random.below(4) * kGrowthUnit;
    });
    try_pool(path_);
  }
}

// --- Torn writes: any subset of the 8-byte words of an update may have reached the device
// ---------

using Words = std::array<std::uint64_t, kSuperblockSize / 8>;

Words words_of(const Superblock& superblock) {
  Words words;
  std::memcpy(words.data(), &superblock, sizeof(superblock));
  return words;
}

Superblock superblock(std::uint64_t generation, std::uint64_t size) {
  Superblock s{};
  s.magic = kMagic;
  s.format_version = kFormatVersion;
  s.generation = generation;
  s.size = size;
  s.max_size = 4 * kGrowthUnit;
  s.domain = s.durability = s.cleanness = 1;
  s.checksum = checksum_of(s);
  return s;
}

/// `from` with the words of `to` that `mask` says.
Words mixed(const Words& from, const Words& to, std::uint64_t mask) {
  Words words = from;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if ((mask >> i & 1) != 0) words[i] = to[i];
  }
  return words;
}

class TornUpdate : public ::testing::Test {
 protected:
  TornUpdate() {
    std::ofstream(path_).put(0);
    std::filesystem::resize_file(path_, 2 * kGrowthUnit);
    file_.emplace(pm::File::open(path_));
  }
  void put(int copy, const Words& words) {
    ASSERT_EQ(::pwrite(file_->fd(), words.data(), sizeof(words),
                       static_cast<off_t>(kSuperblockOffset[copy])),
              static_cast<ssize_t>(sizeof(words)));
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  std::optional<pm::File> file_;
};

TEST_F(TornUpdate, GivesTheOldOrTheNewState) {
  const Words before = words_of(superblock(7, kGrowthUnit));
  const Words after = words_of(superblock(8, 2 * kGrowthUnit));
  for (const int first : {0, 1}) {
    put(1 - first, before);  // the newest copy is not touched before the other one is durable
    for (std::uint64_t mask = 0; mask < (1u << before.size()); ++mask) {
      put(first, mixed(before, after, mask));
      const Superblock found = read_superblock(*file_).superblock;
      ASSERT_EQ(found.size, found.generation == 7 ? kGrowthUnit : 2 * kGrowthUnit) << mask;
    }
    put(first, after);
    for (std::uint64_t mask = 0; mask < (1u << before.size()); ++mask) {
      put(1 - first, mixed(before, after, mask));
      ASSERT_EQ(read_superblock(*file_).superblock.generation, 8u) << mask;
    }
  }
}

TEST_F(TornUpdate, OfACreationIsNoPoolOrAWholeOne) {
  const Words blank{};
  const Words whole = words_of(superblock(1, kGrowthUnit));
  Words marker{};
  marker[0] = kCreationMagic;
  put(0, marker);
  for (std::uint64_t mask = 0; mask < (1u << whole.size()); ++mask) {
    put(1, mixed(blank, whole, mask));
    try {
      ASSERT_EQ(read_superblock(*file_).superblock.size, kGrowthUnit);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::not_a_pool);
      ASSERT_NE(std::string(error.what()).find("interrupted"), std::string::npos);
    }
  }
  put(1, whole);
  for (std::uint64_t mask = 0; mask < (1u << whole.size()); ++mask) {
    put(0, mixed(marker, whole, mask));
    ASSERT_EQ(read_superblock(*file_).superblock.generation, 1u) << mask;
  }
}

// An entry that was being written when the crash came counts for nothing, and is written anew.
TEST(TornEntry, IsFree) {
  const pm::Persister persister(pm::Domain::cpu_cache, false);
  const auto whole = std::make_unique<DirectoryEntry[]>(kDirectoryEntries);
  Directory(whole.get(), persister, "test").add({"orders", "sptree", Kind::u64, Kind::u64});
  util::Random random(seed());
  for (int round = 0; round < 1000; ++round) {
    const auto torn = std::make_unique<DirectoryEntry[]>(kDirectoryEntries);
    const auto* from = reinterpret_cast<const std::uint64_t*>(whole.get());
    auto* to = reinterpret_cast<std::uint64_t*>(torn.get());
    for (std::size_t i = 0; i < offsetof(DirectoryEntry, state) / 8; ++i)
      to[i] = random.one_in(2) ? from[i] : random();
    torn[0].root = random();
    Directory directory(torn.get(), persister, "test");
    directory.check();
    ASSERT_TRUE(directory.live().empty());
    const auto slot = directory.add({"orders", "sptree", Kind::u64, Kind::u64});
    ASSERT_EQ(slot, 0u);
    ASSERT_EQ(directory.root(slot), 0u);
    directory.check();
    ASSERT_EQ(directory.find("orders"), slot);
  }
}

}  // namespace
}  // namespace perdix::detail::pool
