#include "index/common/backup_queue.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/test_eventually.h"

namespace perdix::detail::index {
namespace {

using Numbers = std::map<std::uint64_t, pm::Offset>;

/// A queue of integers, and what it has backed up.
struct Fixture {
  pool::Background background;
  Numbers backed_up;
  std::optional<BackupQueue<std::uint64_t>> queue{
      std::in_place, background,
      [this](std::uint64_t low, pm::Offset leaf) { backed_up.emplace(low, leaf); }};
};

TEST(BackupQueue, BacksUpInTheBackground) {
  pool::Background background;
  std::atomic<std::uint64_t> backed_up{0};
  BackupQueue<std::uint64_t> queue(
      background, [&](std::uint64_t low, pm::Offset leaf) { backed_up += low * leaf; });
  EXPECT_TRUE(queue.push(2, 3));
  util::eventually_reaches("the first entry is backed up", backed_up, 6u);
  EXPECT_TRUE(queue.push(5, 7));  // empty again
  util::eventually_reaches("the second entry is backed up", backed_up, 41u);
  EXPECT_EQ(backed_up, 41U);
}

TEST(BackupQueue, EachEntryIsBackedUpOnce) {
  Fixture fixture;
  Numbers pushed;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(fixture.queue->push(i, 1000 - i));
    pushed.emplace(i, 1000 - i);
    if (i % 300 == 0) fixture.queue->finish();
  }
  fixture.queue->finish();
  EXPECT_EQ(fixture.backed_up, pushed);
}

TEST(BackupQueue, BacksUpTheRestAtTheEnd) {
  Fixture fixture;
  EXPECT_TRUE(fixture.queue->push(1, 2));
  EXPECT_TRUE(fixture.queue->push(3, 4));
  fixture.queue.reset();
  EXPECT_EQ(fixture.backed_up, (Numbers{{1, 2}, {3, 4}}));
}

TEST(BackupQueue, KeepsAStringThatItsOwnerGivesUp) {
  pool::Background background;
  std::vector<std::string> backed_up;
  BackupQueue<std::string> queue(
      background, [&](std::string_view low, pm::Offset) { backed_up.emplace_back(low); });
  std::string low(100, 'a');
  EXPECT_TRUE(queue.push(low, 1));
  low.assign(100, 'b');
  queue.finish();
  ASSERT_EQ(backed_up.size(), 1U);
  EXPECT_EQ(backed_up[0], std::string(100, 'a'));
}

/// Pushed until there is no room, by a thread that the one in the background can't keep up with:
/// that waits in the first entry.
TEST(BackupQueue, IsBounded) {
  pool::Background background;
  std::atomic<bool> begun{false}, go_on{false};
  std::atomic<std::size_t> backed_up{0};
  const auto back_up = [&](std::string_view, pm::Offset) {
    begun = true;
    go_on.wait(false);
    ++backed_up;
  };
  BackupQueue<std::string> queue(background, back_up);
  EXPECT_TRUE(queue.push("first", 1));
  util::eventually("the first entry is being backed up", [&] { return begun.load(); });
  const std::string low(1000, 'k');
  std::size_t pushed = 0;
  while (pushed < 1000 && queue.push(low, 2)) ++pushed;
  EXPECT_GT(pushed, 50U);
  EXPECT_LT(pushed, 66U) << "64 KiB";
  EXPECT_FALSE(queue.push(low, 2));
  EXPECT_FALSE(queue.push(std::string(1 << 17, 'k'), 2));
  go_on = true;
  go_on.notify_all();
  queue.finish();
  EXPECT_EQ(backed_up, 1 + pushed);
  EXPECT_TRUE(queue.push(low, 2)) << "there is room again";
  EXPECT_FALSE(queue.push(std::string(1 << 17, 'k'), 2)) << "never for so much";
}

TEST(BackupQueue, ThreadsLoseNothing) {
  pool::Background background;
  std::atomic<std::uint64_t> backed_up{0};
  BackupQueue<std::uint64_t> queue(background,
                                   [&](std::uint64_t low, pm::Offset) { backed_up += low; });
  std::atomic<std::uint64_t> pushed{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 20'000; ++i) {
          if (queue.push(i, t)) pushed += i;
          if (i % 1000 == 0) queue.finish();
        }
      });
    }
  }
  queue.finish();
  EXPECT_EQ(backed_up, pushed);
  EXPECT_GT(pushed, 0U);
}

}  // namespace
}  // namespace perdix::detail::index
