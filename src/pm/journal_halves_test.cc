// The two halves of the journal: when each is filled, drained and free, whoever drains it, and what
// crashes and errors in between leave.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "pm/journal.h"
#include "pm/page_sync.h"
#include "pm/test_disk.h"
#include "util/random.h"
#include "util/test_eventually.h"

namespace perdix::detail::pm {
namespace {

using util::eventually;

constexpr std::uint64_t kLast = kData + 60 * kSyncPage;

/// Fills the halves, a third of one at a time.
class Filler {
 public:
  Filler(Disk& disk, PageSync& sync) : disk_(disk), sync_(sync) {}

  /// Stores to the first and the last line that are stored to, which nothing else does, durably.
  void store(std::uint64_t value) {
    for (const std::uint64_t line : {kData, kLast}) {
      *disk_.word(line) = value;
      sync_.note(disk_.word(line), 8);
    }
    sync_.sync();
  }
  void fill_third() {
    for (std::uint64_t page = 0; page < 20; ++page)
      sync_.note(disk_.word(kData + (16 + page) * kSyncPage + page * kLineSize),
                 kSyncPage - kLineSize);
    sync_.sync();
  }
  /// Fills what is left of a half with nothing in it, and begins the next one.
  void turn_over() {
    for (int i = 0; i < 4; ++i) fill_third();
  }

 private:
  Disk& disk_;
  PageSync& sync_;
};

std::uint64_t epoch(Disk& disk, unsigned half) { return *disk.word(kArea + half * kHalf); }

/// The first batch of a half is written over several of its last time, of which a crash may leave
/// any: the first of them must not be replayed without the others.
TEST(JournalHalves, NothingOfAHalfIsReplayedOnceBatchesAreWrittenOverIt) {
  int crashes = 0;
  for (std::uint64_t seed = 1; seed <= 240 && !testing::Test::HasFailure(); ++seed) {
    Disk disk;
    disk.random = util::Random(seed);
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk);
    Filler filler(disk, sync);
    for (const std::uint64_t value : {1, 2}) filler.store(value);
    for (int i = 0; i < 6; ++i) filler.fill_third();  // nearly all of both halves
    filler.store(3);
    disk.crash_at = disk.syncs + 1 + seed % 3;  // in place, the epoch, the batch
    filler.fill_third();
    crashes += disk.crashed ? 1 : 0;
    disk.restart();
    replay(disk);
    EXPECT_EQ(*disk.word(kData), 3u) << "seed " << seed;
  }
  EXPECT_EQ(crashes, 240);
}

TEST(JournalHalves, WritersGoOnWhileAHalfIsDrained) {
  Disk disk;
  Beside beside(disk);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk, &beside);
  Filler filler(disk, sync);
  beside.shut();
  filler.store(1);
  filler.turn_over();
  eventually("the background drains the first half", [&] { return beside.syncs > 0; });
  filler.store(2);  // into the second half
  filler.fill_third();
  EXPECT_EQ(beside.syncs, 1u) << "which waits";
  disk.kill();  // both halves are needed
  beside.open();
  sync.end_background();
  disk.restart();
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 2u);
}

TEST(JournalHalves, WritersWaitOnceBothHalvesAreFull) {
  Disk disk;
  Beside beside(disk);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk, &beside);
  Filler filler(disk, sync);
  const std::uint64_t first = epoch(disk, 0);
  beside.shut();
  std::atomic<bool> wrote = false;
  std::jthread writer([&] {
    for (int i = 0; i < 9; ++i) filler.fill_third();
    wrote = true;
  });
  // Each third is a sync of the writer, and there is room for less than seven.
  eventually("both halves are full", [&] { return beside.syncs > 0 && disk.syncs >= 6; });
  EXPECT_FALSE(wrote);
  EXPECT_EQ(epoch(disk, 0), first) << "no half is taken that is not free";
  beside.open();
  writer.join();
  filler.store(7);
  sync.end_background();
  EXPECT_NE(epoch(disk, 0), first);
  disk.restart();
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 7u);
}

/// What the background thread drains is in its place, and in the half until that has a new epoch.
TEST(JournalHalves, ACrashBetweenADrainAndTheNewEpochReplaysBothHalves) {
  std::uint64_t drained = 0;
  for (std::uint64_t crash_at = 1; crash_at <= 4; ++crash_at) {
    Disk disk;
    Beside beside(disk);
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk, &beside);
    Filler filler(disk, sync);
    filler.store(1);
    beside.shut();
    filler.turn_over();
    filler.store(2);
    disk.crash_at = disk.syncs + crash_at;  // in the first sync of the drain, and so on
    beside.open();
    sync.end_background();
    drained += disk.crashed ? 0 : 1;
    disk.crashed = true;
    const std::uint64_t before = beside.syncs;
    EXPECT_GE(before, 2u) << "homes, the epoch";
    disk.restart();
    replay(disk);
    EXPECT_EQ(*disk.word(kData), 2u) << crash_at;
  }
  EXPECT_GE(drained, 1u) << "the last crash is behind the drain";
}

/// The replay empties the older half first: with the newer one empty, the older one would be
/// replayed over what the newer one has brought back.
TEST(JournalHalves, ACrashBetweenTheEpochsOfAReplayMakesNothingOlder) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Disk disk;
    disk.random = util::Random(seed);
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk);
    Filler filler(disk, sync);
    for (std::uint64_t turns = 1 + seed % 2; turns > 0; --turns) {  // either half is the older one
      filler.store(1);
      filler.turn_over();
    }
    filler.store(2);
    disk.restart();
    disk.crash_at = disk.syncs + 1 + seed % 3;
    replay(disk);
    EXPECT_TRUE(disk.crashed);
    disk.restart();
    replay(disk);
    EXPECT_EQ(*disk.word(kData), 2u) << seed;
  }
}

TEST(JournalHalves, AnErrorOfTheBackgroundIsThatOfTheNextSync) {
  Disk disk;
  Beside beside(disk);
  std::atomic<int> failures = 0;
  PageSync sync([&] { ++failures; }, &disk);
  use_journal(sync, disk, &beside);
  Filler filler(disk, sync);
  const std::uint64_t first = epoch(disk, 0);
  filler.store(1);
  beside.error = EIO;
  filler.turn_over();
  sync.end_background();
  filler.store(2);
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(sync.error(), EIO);
  EXPECT_EQ(epoch(disk, 0), first) << "the half is not free";
  disk.restart();
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 1u) << "the last store was not acknowledged";
}

TEST(JournalHalves, ACheckpointReportsAnErrorOfTheBackground) {
  Disk disk;
  Beside beside(disk);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk, &beside);
  Filler filler(disk, sync);
  beside.error = EIO;
  filler.turn_over();
  sync.end_background();
  sync.checkpoint();
  EXPECT_EQ(sync.error(), EIO);
}

TEST(JournalHalves, ThreadsThatWaitForAHalfSeeThatItsDrainFailed) {
  Disk disk;
  Beside beside(disk);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk, &beside);
  Filler filler(disk, sync);
  const std::uint64_t first = epoch(disk, 0);
  beside.shut();
  std::jthread writer([&] {
    for (int i = 0; i < 9; ++i) filler.fill_third();
  });
  eventually("both halves are full", [&] { return beside.syncs > 0 && disk.syncs >= 6; });
  beside.error = EIO;
  beside.open();
  writer.join();
  EXPECT_EQ(sync.error(), EIO);
  EXPECT_EQ(epoch(disk, 0), first) << "no other sync makes good for it";
}

/// A background that can't reach the pages leaves them to the writers.
TEST(JournalHalves, WritersDrainWhatTheBackgroundCanNot) {
  Disk disk;
  Beside beside(disk);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk, &beside);
  Filler filler(disk, sync);
  const std::uint64_t first = epoch(disk, 0);
  beside.error = ENOMEM;
  for (int i = 0; i < 9; ++i) filler.fill_third();
  filler.store(5);
  EXPECT_FALSE(sync.failed());
  EXPECT_NE(epoch(disk, 0), first);
  sync.checkpoint();
  disk.restart();
  EXPECT_EQ(*disk.word(kData), 5u);
  EXPECT_EQ(*disk.word(kLast), 5u);
}

/// Batches behind one that is damaged mean nothing, in the other half, too.
TEST(JournalHalves, ADamagedHalfEndsTheOtherOne) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  Filler filler(disk, sync);
  filler.store(1);
  filler.turn_over();
  filler.store(2);
  *disk.word(kArea + kSyncPage + kSectorBytes + 4096) ^= 1;
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 1u);
}

/// Where the journal is after a crash says its root.
TEST(JournalHalves, ACrashWhileItMovesLeavesItInOnePlace) {
  constexpr std::uint64_t kOther = kArea + 2 * kAreaBytes, kRoot = kArea + 8, kName = 77;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Disk disk;
    disk.random = util::Random(seed);
    PageSync sync(nullptr, &disk);
    JournalPlace first = disk.place();
    first.root = kRoot;
    JournalPlace other = first;
    other.area = kOther;
    other.name = kName;
    sync.use_journal(first);
    sync.start_journal();
    Filler filler(disk, sync);
    filler.store(1);
    // What a user may have stored where the journal goes: a copy of it.
    std::memcpy(disk.word(kOther), disk.word(kArea), kAreaBytes);
    disk.sync(disk.word(kOther), kAreaBytes);
    filler.turn_over();
    filler.store(2);
    // Both halves in place and emptied, those of the other area, the name; or behind all that.
    disk.crash_at = disk.syncs + 1 + seed % 8;
    sync.move_journal(other);
    if (!disk.crashed) filler.store(3);
    const std::uint64_t expected = disk.crashed ? 2 : 3;
    disk.crashed = true;
    disk.restart();
    const JournalPlace named = *disk.word(kRoot) == kName ? other : first;
    Replay replay(named, kSize, "test");
    replay.apply();
    replay.finish(disk);
    EXPECT_GE(*disk.word(kData), expected) << seed;
    EXPECT_LE(*disk.word(kData), 3u) << seed;
  }
}

/// Earlier releases have one area, whose batches are numbered from 0.
TEST(JournalHalves, AnAreaOfAnEarlierReleaseIsReplayed) {
  constexpr std::uint64_t kStores = 1000;
  static_assert(kStores * kSectorBytes > kHalf && kStores * kSectorBytes < kAreaBytes - kSyncPage);
  constexpr std::uint64_t kLine = kArea + 2 * kAreaBytes;
  Disk disk;
  PageSync sync(nullptr, &disk);
  // One half of this journal is such an area.
  JournalPlace place = disk.place();
  place.bytes *= 2;
  sync.use_journal(place);
  sync.start_journal();
  for (std::uint64_t i = 1; i <= kStores; ++i) {
    *disk.word(kLine) = i;
    sync.note(disk.word(kLine), 8);
    sync.sync();
  }
  disk.restart();
  place.bytes = kAreaBytes;
  place.halves = 1;
  Replay replay(place, kSize, "test");
  replay.apply();
  replay.finish(disk);
  EXPECT_EQ(*disk.word(kLine), kStores);
}

}  // namespace
}  // namespace perdix::detail::pm
