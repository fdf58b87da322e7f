// Domains, what survives which crash, and failing devices.
#include "pool/durability.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>

#include "pool/origin.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using pm::Domain;
using pm::Granularity;
using testing_files::expect_error;
using testing_files::smaps_kib;
using testing_files::TempDirectory;

struct DomainCase {
  Durability asked;
  DomainChoice choice;
  Granularity granularity;
  Domain domain;
  Durability durability;
};

TEST(Domain, FollowsFromDurabilityAndPlatform) {
  constexpr auto automatic = Durability::automatic, process = Durability::process,
                 power = Durability::power;
  constexpr auto detect = DomainChoice::detect;
  const DomainCase cases[] = {
      {automatic, detect, Granularity::byte, Domain::cpu_cache, power},
      {automatic, detect, Granularity::cache_line, Domain::memory_controller, power},
      {automatic, detect, Granularity::page, Domain::cpu_cache, process},
      {process, detect, Granularity::byte, Domain::cpu_cache, process},
      {process, detect, Granularity::cache_line, Domain::cpu_cache, process},
      {process, detect, Granularity::page, Domain::cpu_cache, process},
      {power, detect, Granularity::byte, Domain::cpu_cache, power},
      {power, detect, Granularity::cache_line, Domain::memory_controller, power},
      {power, detect, Granularity::page, Domain::page_cache, power},
      {automatic, DomainChoice::memory_controller, Granularity::page, Domain::memory_controller,
       process},
      {automatic, DomainChoice::cpu_cache, Granularity::cache_line, Domain::cpu_cache, power},
      {process, DomainChoice::page_cache, Granularity::page, Domain::page_cache, process},
  };
  for (const DomainCase& c : cases) {
    const DomainDecision decision = decide_domain(c.asked, c.choice, c.granularity);
    EXPECT_EQ(decision.domain, c.domain) << (&c - cases);
    EXPECT_EQ(decision.durability, c.durability) << (&c - cases);
  }
}

TEST(BootId, IsKnownAndStable) {
  const BootId id = current_boot_id();
  EXPECT_EQ(id, current_boot_id());
  EXPECT_TRUE(same_boot(id, id)) << "no boot id on this machine";
  EXPECT_FALSE(same_boot(BootId{}, BootId{})) << "two unknown ones may differ";
  BootId other = id;
  other[15] ^= 1;
  EXPECT_FALSE(same_boot(id, other));
}

TEST(Uuid, IsRandom) {
  std::set<std::array<std::uint8_t, 16>> seen;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(random_uuid()).second);
}

class DurabilityTest : public ::testing::Test {
 protected:
  static PoolOptions with(Durability durability, DomainChoice domain = DomainChoice::detect) {
    PoolOptions options = small_options();
    options.durability = durability;
    options.domain = domain;
    return options;
  }

  /// As if the machine had gone down while the pool was open.
  void machine_went_down(Cleanness cleanness) {
    edit_superblock(path_, [&](Superblock& s) {
      s.boot_id[3] ^= 1;
      s.cleanness = static_cast<std::uint8_t>(cleanness);
    });
  }

  TempDirectory directory_;  // on a disk, if temporary files are
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(DurabilityTest, ProcessPoolIsRefusedAfterTheMachineWentDown) {
  make_pool(path_);
  machine_went_down(Cleanness::unclean);
  const auto before = read_bytes(path_, 0, kPoolAreaSize);
  for (int i = 0; i < 2; ++i) {
    expect_error(Errc::needs_check, "perdix check",
                 [&] { PoolCore::open(path_, small_options()); });
  }
  expect_error(Errc::needs_check, "machine",
               [&] { PoolCore::open(path_, with(Durability::power)); });
  EXPECT_EQ(read_bytes(path_, 0, kPoolAreaSize), before) << "refusal must not change it";
}

TEST_F(DurabilityTest, VerificationOpensARefusedPool) {
  make_pool(path_);
  machine_went_down(Cleanness::unclean);
  {
    const auto core = PoolCore::open(path_, small_options(), Purpose::verification);
    EXPECT_TRUE(core->needs_check());
    EXPECT_EQ(core->indexes().size(), 2u);
    core->close();
  }
  expect_error(Errc::needs_check, "machine", [&] { PoolCore::open(path_, small_options()); });
  {
    const auto core = PoolCore::open(path_, small_options(), Purpose::verification);
    core->accept_after_check();
    EXPECT_FALSE(core->needs_check());
  }
  EXPECT_TRUE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, VerificationOfASoundPoolIsAnOrdinaryOpening) {
  make_pool(path_);
  const auto core = PoolCore::open(path_, small_options(), Purpose::verification);
  EXPECT_FALSE(core->needs_check());
  core->accept_after_check();
  core->close();
  EXPECT_TRUE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, CleanProcessPoolSurvivesTheMachine) {
  make_pool(path_);
  machine_went_down(Cleanness::clean);
  EXPECT_TRUE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, UncleanProcessPoolOfTheSameBootIsRepaired) {
  make_pool(path_);
  edit_superblock(
      path_, [](Superblock& s) { s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean); });
  EXPECT_FALSE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, UncleanPoolOfAnUnknownBootIsRefused) {
  make_pool(path_);
  edit_superblock(path_, [](Superblock& s) {
    s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
    std::memset(s.boot_id, 0, sizeof(s.boot_id));
    s.boot_witness = 0;
  });
  expect_error(Errc::needs_check, "machine", [&] { PoolCore::open(path_, small_options()); });
}

// Where the boot id could not be read, an inode of a tmpfs that is still there proves the same.
TEST_F(DurabilityTest, AnotherWitnessTellsARunOfTheMachine) {
  const TempDirectory in_memory(testing_files::memory_directory());
  for (const auto& path : {path_, in_memory.file("test.pool")}) {
    make_pool(path);
    const std::uint64_t witness = read_copy(path, 0).boot_witness;
    if (witness == 0) GTEST_SKIP() << "there is no tmpfs whose inodes the kernel names";
    const auto forget = [&](std::uint64_t with) {
      edit_superblock(path, [&](Superblock& s) {
        s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
        std::memset(s.boot_id, 0, sizeof(s.boot_id));
        s.boot_witness = with;
      });
    };
    forget(witness ^ 1);
    expect_error(Errc::needs_check, "machine", [&] { PoolCore::open(path, small_options()); });
    forget(witness);
    EXPECT_FALSE(PoolCore::open(path, small_options())->info().was_clean);
  }
}

// A known boot id that is another one can't be outvoted.
TEST_F(DurabilityTest, AWitnessDoesNotReplaceABootId) {
  make_pool(path_);
  machine_went_down(Cleanness::unclean);
  ASSERT_EQ(read_copy(path_, 0).boot_witness, read_copy(path_, 1).boot_witness);
  expect_error(Errc::needs_check, "machine", [&] { PoolCore::open(path_, small_options()); });
}

TEST_F(DurabilityTest, CopyOfAnOpenPoolIsRefusedUntilItIsChecked) {
  const auto copy = directory_.file("copy.pool");
  for (const Durability durability : {Durability::process, Durability::power}) {
    const auto core = PoolCore::create(path_, with(durability));
    std::filesystem::copy_file(path_, copy);
    core->close();
    std::filesystem::remove(path_);
    for (int i = 0; i < 2; ++i)
      expect_error(Errc::needs_check, "copy", [&] { PoolCore::open(copy, small_options()); });
    {
      const auto checked = PoolCore::open(copy, small_options(), Purpose::verification);
      EXPECT_TRUE(checked->needs_check());
      checked->accept_after_check();
    }
    EXPECT_TRUE(PoolCore::open(copy, small_options())->info().was_clean);
    std::filesystem::remove(copy);
  }
}

// The file keeps its inode, and gets another number in the run of a later machine's disks.
TEST_F(DurabilityTest, UncleanPoolIsTheSameFileUnderAnotherName) {
  make_pool(path_);
  const auto renamed = directory_.file("renamed.pool");
  const auto unclean = [](Superblock& s) {
    s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
  };
  edit_superblock(path_, unclean);
  std::filesystem::rename(path_, renamed);
  EXPECT_FALSE(PoolCore::open(renamed, small_options())->info().was_clean);
  edit_superblock(renamed, unclean);
  edit_superblock(renamed, [](Superblock& s) { ++s.file_device; });
  if (read_copy(renamed, 0).file_system != 0 && read_copy(renamed, 0).file_birth != 0) {
    EXPECT_FALSE(PoolCore::open(renamed, small_options())->info().was_clean) << "a volume again";
    edit_superblock(renamed, unclean);
    edit_superblock(renamed, [](Superblock& s) { ++s.file_device; });
    const std::uint32_t system = read_copy(renamed, 0).file_system;
    for (const std::uint32_t other : {system ^ 1, 0U}) {  // 0: it was not stored
      edit_superblock(renamed, [&](Superblock& s) { s.file_system = other; });
      expect_error(Errc::needs_check, "copy", [&] { PoolCore::open(renamed, small_options()); });
    }
    edit_superblock(renamed, [&](Superblock& s) {
      s.file_system = system;
      s.file_birth = 0;
    });
  }
  expect_error(Errc::needs_check, "copy", [&] { PoolCore::open(renamed, small_options()); });
  edit_superblock(renamed, [](Superblock& s) {
    s.durability = s.requested_durability = static_cast<std::uint8_t>(Durability::power);
  });
  EXPECT_FALSE(PoolCore::open(renamed, small_options())->info().was_clean);
}

// An overlay gets another device number each time, as does the volume of a container. While the one
// of before is still there, as beside a snapshot, the file is another one.
TEST_F(DurabilityTest, UncleanPoolIsTheSameFileInAVolumeThatIsMountedAgain) {
  const auto memory = directory_.file("memory");
  std::filesystem::create_directory(memory);
  const testing_files::MountedTmpfs tmpfs(memory, "size=64m");
  std::optional<testing_files::MountedOverlay> before(std::in_place, memory, "a b");
  const testing_files::MountedOverlay after(memory, "c");
  if (!tmpfs || !*before || !after) GTEST_SKIP() << "may not mount";
  path_ = before->path() / "test.pool";
  make_pool(path_);
  if (read_copy(path_, 0).file_system == 0) GTEST_SKIP() << "overlays have no ids here";
  edit_superblock(
      path_, [](Superblock& s) { s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean); });
  path_ = after.path() / "test.pool";
  expect_error(Errc::needs_check, "copy", [&] { PoolCore::open(path_, small_options()); });
  before.reset();
  EXPECT_FALSE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, AFileThatGotTheInodeOfThePoolIsAnotherOne) {
  make_pool(path_);
  if (read_copy(path_, 0).file_birth == 0) GTEST_SKIP() << "no times of birth here";
  edit_superblock(path_, [](Superblock& s) {
    s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
    --s.file_birth;
  });
  expect_error(Errc::needs_check, "copy", [&] { PoolCore::open(path_, small_options()); });
}

TEST_F(DurabilityTest, CleanPoolMayBeCopied) {
  make_pool(path_);
  const auto copy = directory_.file("copy.pool");
  std::filesystem::copy_file(path_, copy);
  EXPECT_EQ(PoolCore::open(copy, small_options())->indexes().size(), 2u);
  edit_superblock(
      copy, [](Superblock& s) { s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean); });
  EXPECT_FALSE(PoolCore::open(copy, small_options())->info().was_clean) << "it is that file now";
}

// After kill -9, with one spare descriptor: enough for the pool's file.
TEST_F(DurabilityTest, FewDescriptorsAreEnough) {
  make_pool(path_);
  testing_files::await_child(testing_files::start_child([&] {
    // UBSan needs descriptors when it meets a type for the first time.
    PoolCore::open(path_, small_options())->close();
    std::optional<testing_files::OneMoreDescriptor> few(std::in_place);
    const auto core = PoolCore::open(path_, small_options());
    few.reset();
    ::kill(::getpid(), SIGKILL);
    return true;
  }));
  EXPECT_NE(read_copy(path_, 0).boot_id[6], 0) << "a random id of version 4";
  EXPECT_FALSE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, PowerPoolSurvivesTheMachine) {
  PoolCore::create(path_, with(Durability::power))->close();
  machine_went_down(Cleanness::unclean);
  EXPECT_FALSE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(DurabilityTest, IsRememberedUnlessAskedOtherwise) {
  const auto durability = [&](const PoolOptions& options) {
    return PoolCore::open(path_, options)->info().durability;
  };
  PoolCore::create(path_, with(Durability::power))->close();
  EXPECT_EQ(durability(small_options()), Durability::power);
  EXPECT_EQ(durability(with(Durability::process)), Durability::process);
  EXPECT_EQ(durability(small_options()), Durability::process);
  EXPECT_EQ(durability(with(Durability::power)), Durability::power);
  EXPECT_EQ(durability(small_options()), Durability::power);
}

TEST_F(DurabilityTest, DomainCanBeForced) {
  for (const Domain domain : {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache}) {
    const auto choice = static_cast<DomainChoice>(domain);
    const auto path = directory_.file(std::string(to_string(domain)));
    auto core = PoolCore::create(path, with(Durability::automatic, choice));
    EXPECT_EQ(core->pm().domain(), domain);
    EXPECT_EQ(core->info().domain, to_string(domain));
    core->extend(2 * kGrowthUnit);
    core->pm().publish(core->open_index("a", "sptree", Kind::u64, Kind::u64).root(), 5);
    core->close();
    core = PoolCore::open(path, with(Durability::automatic, choice));
    EXPECT_EQ(core->open_existing_index("a")->root(), 5u);
    EXPECT_EQ(core->size(), 2 * kGrowthUnit);
  }
}

TEST_F(DurabilityTest, PersistentMemoryIsDetected) {
  ::setenv("PMEM2_FORCE_GRANULARITY", "CACHE_LINE", 1);
  auto core = PoolCore::create(path_, small_options());
  EXPECT_EQ(core->info().durability, Durability::power);
  EXPECT_EQ(core->info().domain, "memory_controller");
  EXPECT_TRUE(core->info().dax);
  core->close();
  ::setenv("PMEM2_FORCE_GRANULARITY", "BYTE", 1);
  core = PoolCore::open(path_, small_options());
  EXPECT_EQ(core->info().durability, Durability::power);
  EXPECT_EQ(core->info().domain, "cpu_cache");
  core->close();
  ::unsetenv("PMEM2_FORCE_GRANULARITY");
  core = PoolCore::open(path_, small_options());  // copied to an ordinary disk, say
  EXPECT_EQ(core->info().durability, Durability::process);
  EXPECT_EQ(core->info().domain, "cpu_cache");
}

TEST_F(DurabilityTest, PowerPoolOnADiskSyncsItsPages) {
  auto core = PoolCore::create(path_, with(Durability::power));
  EXPECT_EQ(core->info().domain, "page_cache");
  // The last page of the pool, so that the huge page that may hold it has no other writer.
  auto* const word = core->at<std::uint64_t>(kGrowthUnit - 4096);
  core->pm().publish(*word, 1);
  EXPECT_FALSE(core->pm().failed());
  core->extend(2 * kGrowthUnit);
  core->close();
  core = PoolCore::open(path_, small_options());
  EXPECT_EQ(*core->at<std::uint64_t>(kGrowthUnit - 4096), 1u);
  EXPECT_TRUE(core->info().was_clean);
}

// Programs that copy what has changed look at the times, which no store to a tmpfs changes.
TEST_F(DurabilityTest, OpeningAndClosingSetTheTimesOfTheFile) {
  const TempDirectory in_memory(testing_files::memory_directory());
  for (const auto& path : {path_, in_memory.file("test.pool")}) {
    make_pool(path);
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
    const auto age = [&] { std::filesystem::last_write_time(path, old); };
    const auto is_old = [&] { return std::filesystem::last_write_time(path) <= old; };
    age();
    const auto core = PoolCore::open(path, small_options());
    EXPECT_FALSE(is_old());
    age();
    core->close();
    EXPECT_FALSE(is_old());
  }
}

TEST_F(DurabilityTest, VerificationsAndFailedOpeningsLeaveTheTimes) {
  const TempDirectory in_memory(testing_files::memory_directory());
  if (!pm::File::create(in_memory.file("probe")).in_memory())
    GTEST_SKIP() << "on a disk stores change them";
  path_ = in_memory.file("test.pool");
  make_pool(path_);
  machine_went_down(Cleanness::unclean);
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::filesystem::last_write_time(path_, old);
  const auto kept = std::filesystem::last_write_time(path_);
  expect_error(Errc::needs_check, "machine", [&] { PoolCore::open(path_, small_options()); });
  PoolCore::open(path_, small_options(), Purpose::verification)->close();
  EXPECT_EQ(std::filesystem::last_write_time(path_), kept);
}

// All of a `process` pool is written out by close(), before the pool is called clean.
TEST_F(DurabilityTest, CloseWritesAProcessPoolOut) {
  if (pm::File::create(directory_.file("probe")).in_memory())
    GTEST_SKIP() << "the directory for temporary files has no disk behind it";
  auto core = PoolCore::create(path_, with(Durability::process));
  core->pm().store(*core->at<std::uint64_t>(2 * kPoolAreaSize), 1);
  core->close();
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  void* const view = ::mmap(nullptr, kGrowthUnit, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_GT(smaps_kib(view, kGrowthUnit, "Rss:"), 0u);
  EXPECT_EQ(smaps_kib(view, kGrowthUnit, "Shared_Dirty:"), 0u);
  EXPECT_EQ(smaps_kib(view, kGrowthUnit, "Private_Dirty:"), 0u);
  ::munmap(view, kGrowthUnit);
  ::close(fd);
}

TEST_F(DurabilityTest, PoolThatIsCheckedStaysOpen) {
  const auto core = PoolCore::create(path_, small_options());
  {
    const PoolCore::Checking one(*core), another(*core);
    expect_error(Errc::in_use, "being checked", [&] { core->close(); });
    EXPECT_TRUE(core->is_open());
  }
  core->close();
  expect_error(Errc::invalid_argument, "closed", [&] { const PoolCore::Checking checking(*core); });
}

TEST_F(DurabilityTest, FailedSyncStopsThePoolForGood) {
  const auto core = PoolCore::create(path_, with(Durability::power));
  core->require_usable();
  // A page that isn't mapped can't be synced: ENOMEM from msync.
  void* unmapped = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(unmapped, 4096);
  core->pm().persist_in_place(unmapped, 8);
  const auto refuses = [&](auto call) { expect_error(Errc::io_error, "device", call); };
  refuses([&] { core->require_usable(); });
  refuses([&] { core->extend(2 * kGrowthUnit); });
  refuses([&] { core->open_index("a", "sptree", Kind::u64, Kind::u64); });
  refuses([&] { core->close(); });
  EXPECT_FALSE(core->is_open());
  const auto again = PoolCore::open(path_, small_options());
  EXPECT_FALSE(again->info().was_clean) << "a pool that failed isn't called clean";
  EXPECT_EQ(again->size(), kGrowthUnit);
  EXPECT_TRUE(again->indexes().empty());
}

}  // namespace
}  // namespace perdix::detail::pool
