// The journal under crashes: a disk that keeps what was synced, and of other pages any sectors that
// the kernel may have written back in between, is replayed and compared with what was durable.
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "pm/page_sync.h"
#include "pm/test_disk.h"
#include "util/random.h"

namespace perdix::detail::pm {
namespace {

/// Each line holds a number in its first word, how often the line was stored to, and in its last
/// word the same, stored later.
class Lines {
 public:
  Lines(Disk& disk, PageSync& sync, util::Random& random)
      : disk_(disk), sync_(sync), random_(random) {}

  void step() {
    switch (random_.below(8)) {
      case 0: return fence();
      case 1: return commit();
      case 2: return long_store();
      case 3: return disk_.write_back(any_line());
      default: return store(any_line(), random_.one_in(3));
    }
  }

  /// After the crash and the replay.
  void expect_right(std::uint64_t seed) {
    for (const auto& [line, version] : stored_) {
      const std::uint64_t first = *disk_.word(line), last = *disk_.word(line + 56);
      EXPECT_GE(first, last) << "the order of stores in a line, seed " << seed;
      EXPECT_GE(last, durable_[line]) << "line " << line << ", seed " << seed;
      EXPECT_LE(first, version);
    }
    if (!in_commit_.empty()) expect_atomic(seed);
  }

 private:
  std::uint64_t any_line() { return kData + random_.below(200) * 7 * kLineSize; }

  void store(std::uint64_t line, bool flush) {
    const std::uint64_t version = ++stored_[line];
    *disk_.word(line) = version;
    *disk_.word(line + 56) = version;
    if (flush) note(line, kLineSize);
  }

  void note(std::uint64_t line, std::uint64_t bytes) {
    sync_.note(disk_.word(line), bytes);
    for (std::uint64_t at = line; at < line + bytes; at += kLineSize)
      if (stored_.contains(at)) noted_[at] = stored_[at];
  }

  void durable() {
    if (disk_.crashed) return;
    for (const auto& [line, version] : noted_) durable_[line] = std::max(durable_[line], version);
    noted_.clear();
  }

  void fence() {
    sync_.sync();
    durable();
  }

  void long_store() {
    const std::uint64_t first = any_line();
    // In place, or in a batch.
    const std::uint64_t lines = (random_.one_in(8) ? 700 : 70) + random_.below(30);
    for (std::uint64_t i = 0; i < lines; ++i) store(first + i * kLineSize, false);
    note(first, lines * kLineSize);
  }

  void commit() {
    if (disk_.crashed) return;
    Changes changes;
    std::map<std::uint64_t, std::uint64_t> before;
    for (std::uint64_t i = 1 + random_.below(6); i > 0; --i) {
      const std::uint64_t line = any_line();
      if (!before.try_emplace(line, stored_[line]).second) continue;
      const std::uint64_t version = stored_[line] + 1;
      changes.set(*disk_.word(line), version);
      changes.set(*disk_.word(line + 56), version);
      stored_[line] = version;
    }
    sync_.commit(changes.all());
    if (disk_.crashed) {
      in_commit_ = before;
      return;
    }
    durable();
    for (const auto& [line, old] : before) durable_[line] = stored_[line];
  }

  /// Of the commit under way at the crash, all or nothing is there; and if it is, so is what was
  /// noted before.
  void expect_atomic(std::uint64_t seed) {
    std::set<bool> happened;
    for (const auto& [line, before] : in_commit_) happened.insert(*disk_.word(line) > before);
    EXPECT_EQ(happened.size(), 1u) << "half a commit, seed " << seed;
    if (!*happened.begin()) return;
    for (const auto& [line, version] : noted_)
      EXPECT_GE(*disk_.word(line), version) << "a commit without what it needs, seed " << seed;
  }

  Disk& disk_;
  PageSync& sync_;
  util::Random& random_;
  std::map<std::uint64_t, std::uint64_t> stored_, durable_, noted_;
  std::map<std::uint64_t, std::uint64_t> in_commit_;  // the lines' versions before
};

/// Steps, a crash in one of the syncs, a replay that is itself cut off now and then, and a look.
void crash_once(std::uint64_t seed, bool in_background) {
  Disk disk;
  disk.random = util::Random(seed);
  util::Random random(seed + 1);
  Beside beside(disk);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk, in_background ? &beside : nullptr);
  Lines lines(disk, sync, random);
  disk.crash_at = 1 + random.below(seed % 4 == 0 ? 2000 : 60);
  while (!disk.crashed) lines.step();
  sync.end_background();
  disk.restart();
  if (random.one_in(2)) {
    disk.crash_at = disk.syncs + 1 + random.below(3);
    replay(disk);
    disk.restart();
  }
  replay(disk);
  lines.expect_right(seed);
}

TEST(Journal, KeepsDurableStoresAndTheOrderOfCommits) {
  for (std::uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed)
    crash_once(seed, false);
}

TEST(Journal, KeepsThemWhileAThreadDrainsTheOtherHalf) {
  for (std::uint64_t seed = 1; seed <= 120 && !testing::Test::HasFailure(); ++seed)
    crash_once(seed, true);
}

/// After a kill the page cache holds all stores, those that were not fenced, too; what was durable
/// is not older after the replay.
TEST(Journal, LosesNothingWhenOnlyTheProcessIsKilled) {
  for (std::uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    Disk disk;
    util::Random random(seed);
    Beside beside(disk);
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk, seed % 2 == 0 ? &beside : nullptr);
    Lines lines(disk, sync, random);
    for (std::uint64_t i = random.below(seed % 4 < 2 ? 400 : 1500); i > 0; --i) lines.step();
    disk.kill();  // wherever the background is
    sync.end_background();
    disk.restart();
    replay(disk);
    lines.expect_right(seed);
  }
}

TEST(Journal, ACommitIsOneSync) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  sync.note(disk.word(kData), 8);
  sync.note(disk.word(kData + 100 * kSyncPage), 3000);
  const Change change = set_word(*disk.word(kData + 7 * kSyncPage), 5);
  sync.commit({&change, 1});
  EXPECT_EQ(disk.syncs, 1u);
  EXPECT_EQ(*disk.word(kData + 7 * kSyncPage), 5u);
  sync.sync();
  EXPECT_EQ(disk.syncs, 1u) << "nothing was noted";
}

TEST(Journal, MoreFlushesThanAThreadCanNoteAreSyncedBefore) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  for (std::uint64_t i = 0; i < 3 * PageNotes::kCapacity; ++i) {
    *disk.word(kData + 2 * i * kLineSize) = i + 1;
    sync.note(disk.word(kData + 2 * i * kLineSize), 8);
  }
  sync.sync();
  EXPECT_EQ(disk.syncs, 3u);
  disk.restart();
  replay(disk);
  for (std::uint64_t i = 0; i < 3 * PageNotes::kCapacity; ++i)
    EXPECT_EQ(*disk.word(kData + 2 * i * kLineSize), i + 1);
}

TEST(Journal, NotesForAllGoWithTheNextSyncOfAnyThread) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  std::jthread([&] { sync.store_for_all(*disk.word(kData), 3); }).join();
  EXPECT_EQ(disk.syncs, 0u);
  sync.note(disk.word(kData + kSyncPage), 8);
  sync.sync();
  EXPECT_EQ(disk.syncs, 1u);
  disk.restart();
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 3u);
}

TEST(Journal, NotesOfTwoPoolsDoNotMix) {
  Disk one, other;
  PageSync first(nullptr, &one), second(nullptr, &other);
  use_journal(first, one);
  use_journal(second, other);
  first.note(one.word(kData), 8);
  second.note(other.word(kData), 8);
  second.sync();
  EXPECT_EQ(one.syncs, 0u);
  EXPECT_EQ(other.syncs, 1u);
  first.sync();
  EXPECT_EQ(one.syncs, 1u);
}

TEST(Journal, ACheckpointEmptiesIt) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  *disk.word(kData) = 3;
  sync.note(disk.word(kData), 8);
  sync.sync();
  sync.checkpoint();
  *disk.word(kData) = 4;
  disk.write_back(kData);
  disk.restart();
  const std::uint64_t before = *disk.word(kData);
  replay(disk);
  EXPECT_EQ(*disk.word(kData), before) << "3 is in its place, so the batch is not needed";
  EXPECT_GE(before, 3u);
}

TEST(Journal, EachThreadSeesThatTheSyncOfItsGroupFailed) {
  constexpr unsigned kThreads = 8;
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  EXPECT_FALSE(sync.failed());
  disk.error = 5;
  std::array<bool, kThreads> seen{};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        sync.note(disk.word(kData + t * kLineSize), 8);
        sync.sync();
        seen[t] = sync.failed();
      });
    }
  }
  for (const bool one : seen) EXPECT_TRUE(one);
  EXPECT_EQ(sync.error(), 5);
}

/// Threads that commit to words of the same lines lose nothing, and share syncs.
TEST(Journal, GroupsOfThreads) {
  constexpr unsigned kThreads = 8, kCommits = 300;
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 1; i <= kCommits; ++i) {
          const std::uint64_t shift = 8 * (t % 4);
          const Change change{disk.word(kData + t / 4 * 8), std::uint64_t{0xffff} << (2 * shift),
                              i << (2 * shift)};
          sync.commit({&change, 1});
        }
      });
    }
  }
  disk.restart();
  replay(disk);
  for (unsigned t = 0; t < kThreads; ++t)
    EXPECT_EQ(*disk.word(kData + t / 4 * 8) >> (16 * (t % 4)) & 0xffff, kCommits);
}

TEST(Journal, ADamagedBatchEndsIt) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    *disk.word(kData) = i;
    sync.note(disk.word(kData), 8);
    sync.sync();
  }
  // Of the second batch, a byte of the line.
  *disk.word(kArea + kSyncPage + kSectorBytes + 72) ^= 1;
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 1u);
}

TEST(Journal, AnUnfinishedReplayRestoresTheContents) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  for (std::uint64_t i = 1; i <= 3; ++i) {  // the same line in several batches, and others
    *disk.word(kData) = i;
    *disk.word(kData + i * kSyncPage) = i;
    sync.note(disk.word(kData), 8);
    sync.note(disk.word(kData + i * kSyncPage), 8);
    sync.sync();
  }
  disk.restart();
  const std::vector<std::byte> before(disk.base(), disk.base() + kSize);
  {
    Replay replay(disk.place(), kSize, "test");
    EXPECT_EQ(replay.pages().size(), 4u);
    replay.apply();
    EXPECT_EQ(*disk.word(kData), 3u);
  }
  EXPECT_TRUE(std::equal(before.begin(), before.end(), disk.base()));
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 3u);
}

/// A run whose batches stay in the journal ends by a checkpoint. What other runs store afterwards,
/// without a journal, is not undone by a replay of theirs.
TEST(Journal, IgnoresBatchesOfEarlierRunsOnceUsedAgain) {
  Disk disk;
  {
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk);
    *disk.word(kData) = 1;
    sync.note(disk.word(kData), 8);
    sync.sync();
    sync.checkpoint();
  }
  *disk.word(kData) = 2;
  disk.sync(disk.word(kData), kSyncPage);
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  disk.restart();
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 2u);
}

/// What a user stores comes into the journal. Where it would be read as a batch, after a shorter
/// one of a later epoch, it is none.
TEST(Journal, DoesNotTakeUserBytesForABatch) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  const auto store = [&](std::uint64_t line, std::uint64_t value) {
    *disk.word(line) = value;
    sync.note(disk.word(line), 8);
    sync.sync();
  };
  store(kData, 1);
  store(kData, 2);
  // The second batch, as a user could have put it together, somewhere else.
  const std::vector<std::byte> forged(disk.base() + kArea + kSyncPage + kSectorBytes,
                                      disk.base() + kArea + kSyncPage + 2 * kSectorBytes);
  sync.checkpoint();
  store(kData, 3);
  store(kData, 4);
  std::copy(forged.begin(), forged.end(), disk.base() + kArea + kSyncPage + kSectorBytes);
  replay(disk);
  EXPECT_EQ(*disk.word(kData), 3u);
}

TEST(Journal, EpochsDoNotRepeat) {
  Disk disk;
  std::set<std::uint64_t> seen{0};
  for (int i = 0; i < 50; ++i) {
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk);
    EXPECT_TRUE(seen.insert(*disk.word(kArea)).second);
  }
}

TEST(Journal, ABlankAreaIsEmpty) {
  Disk disk;
  const Replay replay(disk.place(), kSize, "test");
  EXPECT_TRUE(replay.pages().empty());
}

/// Long values are synced in their place: what earlier batches say of it is not replayed over them,
/// what later ones say is.
TEST(Journal, EarlierBatchesDoNotOverwriteALongStore) {
  constexpr std::uint64_t kBytes = 16 * kSyncPage, kLong = 0x5a5a5a5a5a5a5a5a;
  for (const std::uint64_t later : {std::uint64_t{0}, std::uint64_t{7}}) {
    Disk disk;
    PageSync sync(nullptr, &disk);
    use_journal(sync, disk);
    const auto store = [&](std::uint64_t value) {
      *disk.word(kData + kLineSize) = value;
      sync.note(disk.word(kData + kLineSize), 8);
      sync.sync();
    };
    store(1);
    std::memset(disk.word(kData), 0x5a, kBytes);
    sync.note(disk.word(kData), kBytes);
    sync.sync();
    if (later != 0) store(later);
    disk.restart();
    replay(disk);
    EXPECT_EQ(*disk.word(kData + kLineSize), later != 0 ? later : kLong);
    EXPECT_EQ(*disk.word(kData + kBytes - 8), kLong);
  }
}

TEST(Journal, LongRangesOfAGroupShareItsSync) {
  constexpr std::uint64_t kBytes = 5000 / kLineSize * kLineSize;
  static_assert(kBytes > kLongRange);
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  for (std::uint64_t i = 0; i < 4; ++i) {
    std::memset(disk.word(kData + 2 * i * kBytes), 0x5a, kBytes);
    sync.note(disk.word(kData + 2 * i * kBytes), kBytes);
  }
  sync.sync();
  EXPECT_EQ(disk.syncs, 1u);
  disk.restart();
  replay(disk);
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(*disk.word(kData + 2 * i * kBytes + kBytes - 8), 0x5a5a5a5a5a5a5a5a);
}

TEST(Journal, RefusesABatchThatNoPoolWrites) {
  Disk disk;
  PageSync sync(nullptr, &disk);
  use_journal(sync, disk);
  *disk.word(kFirstLine - 64) = 7;  // the superblock's
  sync.note(disk.word(kFirstLine - 64), 8);
  sync.sync();
  disk.restart();
  EXPECT_THROW(replay(disk), Error);
  EXPECT_EQ(*disk.word(kFirstLine - 64), 0u) << "nothing was changed";
}

}  // namespace
}  // namespace perdix::detail::pm
