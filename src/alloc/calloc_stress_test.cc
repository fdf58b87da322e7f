// Many threads allocate, free, and exhaust the space; readers watch that nothing is used too early.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "alloc/calloc.h"
#include "alloc/test_space.h"
#include "epoch/guard.h"
#include "pm/access.h"
#include "util/random.h"

namespace perdix::detail::alloc {
namespace {

constexpr unsigned kThreads = 4;
constexpr unsigned kLinksPerThread = 64;
constexpr std::array<std::size_t, 8> kSizes = {16, 64, 64, 1120, 1120, 5000, 30'000, 150'000};

class CallocStress : public ::testing::Test {
 protected:
  CallocStress() {
    Calloc::format(space_);
    calloc_ = std::make_unique<Calloc>(space_);
  }

  /// A thread's random operations on its own links. The first word of a linked block is a stamp
  /// that no other block has, so a block that two links share is found.
  void work(unsigned thread, unsigned operations) {
    util::Random random(thread + 1);
    for (unsigned i = 0; i < operations; ++i) {
      const auto link =
          static_cast<unsigned>(thread * kLinksPerThread + random.below(kLinksPerThread));
      try {
        replace(link, random.one_in(3) ? 0 : kSizes[random.below(kSizes.size())],
                std::uint64_t{thread + 1} << 32 | i);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Errc::out_of_space);
        ++exhausted_;
      }
    }
  }

  /// Links another block, or none if bytes is 0.
  void replace(unsigned number, std::size_t bytes, std::uint64_t stamp) {
    std::uint64_t& link = root(space_, number);
    Session session = calloc_->session();
    const Offset old = pm::load(link);
    if (old == 0 && bytes == 0) return;
    Offset block = pm::kNull;
    if (bytes > 0) {
      block = session.reserve(bytes);
      space_.pm().store(space_.at<std::uint64_t>(block), stamp);
    }
    if (old != 0) {
      ASSERT_EQ(pm::load(space_.at<std::uint64_t>(old)), stamps_[number]);
      session.free(old);
    }
    session.commit_when(link, ~std::uint64_t{0}, block);
    session.log();
    space_.pm().publish(link, block);
    session.finish();
    stamps_[number] = stamp;
  }

  /// Reads linked blocks inside Guards: a block that is found linked holds its address until the
  /// end of the Guard.
  void watch(const std::atomic<bool>& stop) {
    util::Random random(99);
    while (!stop.load(std::memory_order_relaxed)) {
      const epoch::Guard guard;
      const Offset block =
          pm::load(root(space_, static_cast<unsigned>(random.below(kThreads * kLinksPerThread))));
      if (block == 0) continue;
      const std::uint64_t stamp = pm::load(space_.at<std::uint64_t>(block));
      for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(pm::load(space_.at<std::uint64_t>(block)), stamp);
      }
    }
  }

  void run(unsigned operations) {
    std::atomic<bool> stop{false};
    std::thread watcher([&] { watch(stop); });
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i, operations] { work(i, operations); });
    }
    for (std::thread& thread : threads) thread.join();
    stop = true;
    watcher.join();
  }

  void compare() {
    std::vector<Offset> linked;
    for (unsigned i = 0; i < kThreads * kLinksPerThread; ++i) {
      if (root(space_, i) != 0) linked.push_back(root(space_, i));
    }
    std::sort(linked.begin(), linked.end());
    std::vector<Offset> allocated;
    calloc_->for_each_allocated([&](Offset block, std::uint64_t) { allocated.push_back(block); });
    EXPECT_EQ(allocated, linked);
    CheckReport report;
    calloc_->check(report);
    EXPECT_TRUE(report.ok()) << ::testing::PrintToString(report.problems);
  }

  TestSpace space_{std::uint64_t{512} << 20};
  std::unique_ptr<Calloc> calloc_;
  std::array<std::uint64_t, kThreads * kLinksPerThread> stamps_{};  // of the linked blocks
  std::atomic<unsigned> exhausted_{0};
};

TEST_F(CallocStress, ThreadsDoNotDisturbEachOther) {
  run(20'000);
  compare();
  calloc_ = std::make_unique<Calloc>(space_);
  compare();
  run(5'000);
  compare();
}

TEST_F(CallocStress, ThreadsShareTheLastOfTheSpace) {
  space_.set_limit(kChunkSize);
  run(20'000);
  EXPECT_GT(exhausted_, 0U);
  compare();
}

}  // namespace
}  // namespace perdix::detail::alloc
