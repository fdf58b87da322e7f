// Group commit with many threads, over a disk that is memory.
#include "pm/page_sync.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pm/turn.h"
#include "util/random.h"

namespace perdix::detail::pm {
namespace {

constexpr std::uint64_t kDiskPages = 256;
constexpr std::uint64_t kJournalPages = 160;  // the first of them

struct alignas(kSyncPage) DiskPage {
  std::array<std::uint64_t, kSyncPage / 8> words;
};

/// Copies what is synced, and checks that one sync runs at a time.
class PagedDisk final : public SyncDevice {
 public:
  int sync(void* begin, std::size_t bytes) noexcept override {
    EXPECT_FALSE(busy_.exchange(true)) << "two syncs at once";
    ++syncs;
    const auto offset = static_cast<const std::byte*>(begin) - bytes_of(memory);
    std::memcpy(bytes_of(disk) + offset, begin, bytes);
    busy_ = false;
    return syncs == fail_at ? EIO : 0;
  }

  JournalPlace place() { return {bytes_of(memory), 0, kJournalPages * kSyncPage, 0}; }

  std::vector<DiskPage> memory = std::vector<DiskPage>(kDiskPages);
  std::vector<DiskPage> disk = std::vector<DiskPage>(kDiskPages);
  std::atomic<std::uint64_t> syncs{0};
  std::uint64_t fail_at = 0;

 private:
  static std::byte* bytes_of(std::vector<DiskPage>& pages) {
    return reinterpret_cast<std::byte*>(pages.data());
  }

  std::atomic<bool> busy_{false};
};

/// Calls use(i) in threads 0 to `count` - 1 at once.
template <class Use>
void in_threads(unsigned count, Use use) {
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back([=] { use(i); });
}

TEST(Turn, IsThereThoughItWasGivenBefore) {
  Turn turn;
  turn.give(Turn::Kind::lead);
  EXPECT_EQ(turn.wait(), Turn::Kind::lead);
  turn.give(Turn::Kind::done);
  EXPECT_EQ(turn.wait(), Turn::Kind::done);
}

TEST(Turn, WakesTheThreadThatWaits) {
  for (int round = 0; round < 2000; ++round) {
    Turn turn;
    int seen = 0, stored = 0;
    std::jthread waiter([&] {
      if (turn.wait() == Turn::Kind::done) seen = stored;
    });
    stored = 7;
    turn.give(Turn::Kind::done);
    waiter.join();
    EXPECT_EQ(seen, 7);
  }
}

/// Each thread has a page of its own, and finds there what it has made durable.
TEST(GroupCommit, IsDurableForEachOfManyThreads) {
  constexpr unsigned kThreads = 48, kCommits = 200;
  for (const bool journaled : {false, true}) {
    PagedDisk disk;
    PageSync sync(nullptr, &disk);
    if (journaled) sync.use_journal(disk.place());
    if (journaled) sync.start_journal();
    in_threads(kThreads, [&](unsigned t) {
      util::Random random(t);
      DiskPage& page = disk.memory[kJournalPages + t];
      const DiskPage& durable = disk.disk[kJournalPages + t];
      for (std::uint64_t i = 1; i <= kCommits; ++i) {
        page.words[0] = i;
        if (random.one_in(20)) {
          sync.sync_in_place(&page, sizeof page);
          EXPECT_EQ(durable.words[0], i);
        } else {
          const Change change = set_word(page.words[8], i);
          sync.note(&page.words[0], 8);
          sync.commit({&change, 1});
          EXPECT_EQ(page.words[8], i);
          if (!journaled) EXPECT_EQ(durable.words[8], i);
        }
        if (random.one_in(40)) sync.store_for_all(page.words[16], i);
      }
    });
    sync.checkpoint();
    for (unsigned t = 0; t < kThreads; ++t) {
      EXPECT_EQ(disk.disk[kJournalPages + t].words[0], kCommits) << t;
      EXPECT_EQ(disk.disk[kJournalPages + t].words[8], disk.memory[kJournalPages + t].words[8]);
    }
    EXPECT_LE(disk.syncs, std::uint64_t{kThreads} * kCommits * 3);
  }
}

/// The threads that wait for the sync that fails, and those behind it, go on.
TEST(GroupCommit, EndsForAllThreadsWhenASyncFails) {
  for (const std::uint64_t fail_at : {2, 5, 11}) {
    PagedDisk disk;
    disk.fail_at = fail_at;
    std::atomic<int> failures{0};
    PageSync sync([&] { ++failures; }, &disk);
    sync.use_journal(disk.place());
    sync.start_journal();
    in_threads(16, [&](unsigned t) {
      for (std::uint64_t i = 1; i <= 50; ++i) {
        const Change change = set_word(disk.memory[kJournalPages + t].words[0], i);
        sync.commit({&change, 1});
      }
    });
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(sync.error(), EIO);
    EXPECT_EQ(disk.syncs, fail_at) << "nothing is synced behind a failure";
  }
}

}  // namespace
}  // namespace perdix::detail::pm
