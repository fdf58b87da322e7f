// Pools with a journal: what an opening finds in it, in which domain and for what purpose.
#include <vector>

#include <gtest/gtest.h>

#include "pool/claim_image.h"
#include "pool/journal_area.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;

class PoolJournal : public ::testing::Test {
 protected:
  static PoolOptions with(DomainChoice domain, Durability durability = Durability::power) {
    PoolOptions options = small_options();
    options.durability = durability;
    options.domain = domain;
    return options;
  }
  static PoolOptions journaled() { return with(DomainChoice::page_cache); }

  /// What a kill leaves of a pool whose index "a" has the root 5: in place it has a later one,
  /// which was not fenced.
  void make_killed_pool() {
    const auto core = PoolCore::create(path_, journaled());
    const IndexHandle index = core->open_index("a", "sptree", Kind::u64, Kind::u64);
    core->pm().publish(index.root(), 5);
    core->pm().store(index.root(), 6);
    std::filesystem::copy_file(path_, killed_);
  }

  static pm::Offset root_of(PoolCore& core) { return core.open_existing_index("a")->root(); }
  static bool counts(const std::filesystem::path& path) {
    return (read_copy(path, 0).features & kHasJournal) != 0;
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  std::filesystem::path killed_ = directory_.file("killed.pool");
};

TEST_F(PoolJournal, AKilledPoolIsAsItsLastFenceLeftIt) {
  make_killed_pool();
  claim_image(killed_);
  const auto core = PoolCore::open(killed_, journaled());
  EXPECT_FALSE(core->info().was_clean);
  EXPECT_EQ(root_of(*core), 5u);
}

TEST_F(PoolJournal, CountsOnlyWhileThePoolIsOpen) {
  const auto core = PoolCore::create(path_, journaled());
  EXPECT_TRUE(counts(path_));
  core->close();
  EXPECT_FALSE(counts(path_)) << "an earlier release may open it";
  EXPECT_EQ(read_copy(path_, 0).format_version, kFormatVersion);
}

TEST_F(PoolJournal, ARefusedPoolKeepsItsBytes) {
  make_killed_pool();
  claim_image(killed_);
  flip(killed_, entry_offset(9) + offsetof(DirectoryEntry, state), 0x55);
  const auto bytes = [&] { return read_bytes(killed_, 0, std::filesystem::file_size(killed_)); };
  const std::vector<char> before = bytes();
  expect_error(Errc::corrupt, "", [&] { PoolCore::open(killed_, journaled()); });
  EXPECT_TRUE(before == bytes());
  flip(killed_, entry_offset(9) + offsetof(DirectoryEntry, state), 0x55);
  EXPECT_EQ(root_of(*PoolCore::open(killed_, journaled())), 5u);
}

TEST_F(PoolJournal, IsReplayedInAnyDomain) {
  make_killed_pool();
  claim_image(killed_);
  {
    const auto core = PoolCore::open(killed_, with(DomainChoice::cpu_cache, Durability::process));
    EXPECT_EQ(root_of(*core), 5u);
    EXPECT_FALSE(counts(killed_));
    core->pm().publish(core->open_existing_index("a")->root(), 7);
    std::filesystem::copy_file(killed_, path_, std::filesystem::copy_options::overwrite_existing);
  }
  claim_image(path_);
  const auto core = PoolCore::open(path_, journaled());
  EXPECT_TRUE(counts(path_));
  EXPECT_EQ(root_of(*core), 7u) << "the journal of an earlier run is not replayed over it";
  std::filesystem::copy_file(path_, killed_, std::filesystem::copy_options::overwrite_existing);
  claim_image(killed_);
  EXPECT_EQ(root_of(*PoolCore::open(killed_, journaled())), 7u);
}

TEST_F(PoolJournal, ACleanPoolHasNothingToReplay) {
  {
    const auto core = PoolCore::create(path_, journaled());
    core->pm().publish(core->open_index("a", "sptree", Kind::u64, Kind::u64).root(), 5);
    core->close();
  }
  {
    const auto core = PoolCore::open(path_, with(DomainChoice::cpu_cache, Durability::process));
    core->pm().publish(core->open_existing_index("a")->root(), 8);
    core->close();
  }
  const auto core = PoolCore::open(path_, journaled());
  std::filesystem::copy_file(path_, killed_);
  claim_image(killed_);
  EXPECT_EQ(root_of(*PoolCore::open(killed_, journaled())), 8u);
}

TEST_F(PoolJournal, ACopyOfAnOpenPoolIsReplayedForItsCheck) {
  make_killed_pool();
  expect_error(Errc::needs_check, "copy", [&] { PoolCore::open(killed_, journaled()); });
  const auto core = PoolCore::open(killed_, journaled(), Purpose::verification);
  EXPECT_TRUE(core->needs_check());
  EXPECT_TRUE(core->pm().commits_as_one());
  EXPECT_EQ(root_of(*core), 5u);
  core->pm().publish(core->open_existing_index("a")->root(), 9);
  core->accept_after_check();
  core->close();
  EXPECT_EQ(root_of(*PoolCore::open(killed_, journaled())), 9u);
}

/// Pools of earlier releases have a journal of one area.
TEST_F(PoolJournal, AnAreaOfAnEarlierReleaseIsReplayed) {
  make_killed_pool();
  edit_superblock(killed_, [](Superblock& s) { s.features &= ~kJournalHalves; });
  claim_image(killed_);
  const auto core = PoolCore::open(killed_, journaled());
  EXPECT_EQ(root_of(*core), 5u);
  EXPECT_EQ(read_copy(killed_, 0).features & kJournalFeatures, kJournalFeatures);
}

/// The superblock would say that its journal is of another form.
TEST_F(PoolJournal, AVerificationHasNoneIfItWasOfAnEarlierRelease) {
  make_killed_pool();
  edit_superblock(killed_, [](Superblock& s) { s.features &= ~kJournalHalves; });
  const auto core = PoolCore::open(killed_, journaled(), Purpose::verification);
  EXPECT_TRUE(core->needs_check());
  EXPECT_FALSE(core->pm().commits_as_one());
  EXPECT_EQ(root_of(*core), 5u);
}

/// More than both halves hold is written, most of it drained by the background thread.
TEST_F(PoolJournal, AKilledPoolHasWhatWasDrainedAndWhatWasNot) {
  constexpr std::uint64_t kStores = 4000;
  {
    const auto core = PoolCore::create(path_, journaled());
    const IndexHandle index = core->open_index("a", "sptree", Kind::u64, Kind::u64);
    for (std::uint64_t i = 1; i <= kStores; ++i) core->pm().publish(index.root(), i);
    std::filesystem::copy_file(path_, killed_);
    core->pm().publish(index.root(), 0);  // so that it can be closed
  }
  claim_image(killed_);
  EXPECT_EQ(root_of(*PoolCore::open(killed_, journaled())), kStores);
}

TEST_F(PoolJournal, HasTheSizeThatIsAskedFor) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  std::uint64_t root = 0, allocated = 0;
  const auto journal_after = [&](std::uint64_t asked) {
    PoolOptions options = journaled();
    options.journal_size = asked;
    const auto core = std::filesystem::exists(path_) ? PoolCore::open(path_, options)
                                                     : PoolCore::create(path_, options);
    const IndexHandle index = core->open_index("a", "sptree", Kind::u64, Kind::u64);
    EXPECT_EQ(index.root(), root);
    for (int i = 0; i < 700; ++i) core->pm().publish(index.root(), ++root);
    CheckReport report;
    core->allocator().check(report);
    EXPECT_TRUE(report.ok());
    allocated = core->allocator().bytes_allocated();
    EXPECT_EQ(core->info().allocated, 0) << "it is no index's";
    const std::uint64_t size = core->info().journal_size;
    // The pool is killed: its image goes on in its place.
    std::filesystem::copy_file(path_, killed_);
    return size;
  };
  const auto go_on = [&](std::uint64_t asked, std::uint64_t size) {
    EXPECT_EQ(journal_after(asked), size);
    std::filesystem::rename(killed_, path_);
    claim_image(path_);
  };
  go_on(0, kMinJournal);
  EXPECT_EQ(allocated, 0u);
  go_on(2 * kMiB, 2 * kMiB);
  EXPECT_EQ(allocated, 2 * kMiB);
  go_on(0, 2 * kMiB);
  go_on(3 * kMiB, 3 * kMiB);
  go_on(kMinJournal, kMinJournal);
  go_on(0, kMinJournal);
  EXPECT_LE(allocated, 3 * kMiB) << "what was freed may wait for its grace period";
}

TEST_F(PoolJournal, ADamagedNameIsRefused) {
  make_killed_pool();
  claim_image(killed_);
  flip(killed_, kJournalRootOffset, 0x55);
  expect_error(Errc::corrupt, "where its journal is",
               [&] { PoolCore::open(killed_, journaled()); });
}

TEST_F(PoolJournal, IsNamedByAWordThatIsChecked) {
  const pm::FileRange area{std::uint64_t{5} << 24,
                           (std::uint64_t{5} << 24) + (std::uint64_t{64} << 20)};
  const std::uint64_t name = journal_name(area);
  EXPECT_EQ(named_journal(name)->begin, area.begin);
  EXPECT_EQ(named_journal(name)->end, area.end);
  for (unsigned bit = 0; bit < 64; ++bit)
    EXPECT_FALSE(named_journal(name ^ std::uint64_t{1} << bit)) << bit;
  EXPECT_EQ(named_journal(0)->begin, kFirstJournal.begin);
}

TEST_F(PoolJournal, IsLargerInLargerPools) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  EXPECT_EQ(default_journal(16 * kMiB, kMaxPoolSize), kMinJournal);
  EXPECT_EQ(default_journal(32 * kMiB, kMaxPoolSize), 4 * kMiB);
  EXPECT_EQ(default_journal(32 * kMiB, 64 * kMiB), kMinJournal) << "which is to stay small";
  EXPECT_EQ(default_journal(std::uint64_t{1} << 40, kMaxPoolSize), kMaxDefaultJournal);
  PoolOptions options = journaled();
  options.initial_size = std::uint64_t{64} << 20;
  options.max_size = std::uint64_t{256} << 20;
  const PoolInfo info = PoolCore::create(path_, options)->info();
  EXPECT_EQ(info.journal_size, std::uint64_t{8} << 20);
  EXPECT_EQ(info.allocated, 0) << "it is no index's";
}

/// A verification that the superblock does not know of must not journal: a crash in it would leave
/// a journal that does not count.
TEST_F(PoolJournal, AVerificationHasNoneIfThePoolHadNone) {
  {
    const auto core = PoolCore::create(path_, with(DomainChoice::cpu_cache, Durability::process));
    core->pm().publish(core->open_index("a", "sptree", Kind::u64, Kind::u64).root(), 5);
    std::filesystem::copy_file(path_, killed_);
  }
  const auto core = PoolCore::open(killed_, journaled(), Purpose::verification);
  EXPECT_TRUE(core->needs_check());
  EXPECT_FALSE(core->pm().commits_as_one());
  core->accept_after_check();
  EXPECT_FALSE(counts(killed_));
  core->pm().publish(core->open_existing_index("a")->root(), 6);
  core->close();
  const auto again = PoolCore::open(killed_, journaled());
  EXPECT_TRUE(counts(killed_));
  EXPECT_EQ(root_of(*again), 6u);
}

}  // namespace
}  // namespace perdix::detail::pool
