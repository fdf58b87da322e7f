#include "pool/background.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/test_eventually.h"

namespace perdix::detail::pool {
namespace {

TEST(Background, TheThreadNeedsNoHelp) {
  Background background;
  std::atomic<int> runs{0};
  Background::Job job(background, [&] { ++runs; });
  EXPECT_EQ(runs, 0) << "nobody has requested it";
  for (int round = 1; round <= 3; ++round) {  // it must wake up again after it has slept
    job.request();
    util::eventually_reaches("the thread has run the job", runs, round);
  }
}

TEST(Background, FinishHelps) {
  Background background;
  int runs = 0;
  Background::Job job(background, [&] { ++runs; });
  job.finish();
  EXPECT_EQ(runs, 0);
  job.request();
  job.finish();
  EXPECT_EQ(runs, 1);
  job.finish();
  EXPECT_EQ(runs, 1);
}

TEST(Background, DrainFinishesAllJobs) {
  Background background;
  int first = 0, second = 0;
  Background::Job one(background, [&] { ++first; });
  Background::Job other(background, [&] { ++second; });
  one.request();
  other.request();
  background.drain();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(Background, FinishesAJobThatGoesAway) {
  Background background;
  int runs = 0;
  std::optional<Background::Job> job(std::in_place, background, [&] { ++runs; });
  job->request();
  job.reset();
  EXPECT_EQ(runs, 1);
  background.drain();
  EXPECT_EQ(runs, 1);
}

TEST(Background, RunsAgainAfterARequestDuringARun) {
  Background background;
  int left = 5;
  std::optional<Background::Job> job;
  job.emplace(background, [&] {
    if (--left > 0) job->request();
  });
  job->request();
  job->finish();
  EXPECT_EQ(left, 0);
}

TEST(Background, NoJobKeepsAnotherFromRunning) {
  Background background;
  std::atomic<bool> other_ran{false};
  std::optional<Background::Job> endless;
  endless.emplace(background, [&] {
    if (!other_ran) endless->request();
  });
  Background::Job other(background, [&] { other_ran = true; });
  endless->request();
  other.request();
  background.drain();
  EXPECT_TRUE(other_ran);
}

TEST(Background, RunsAloneAndServesAllEarlierRequests) {
  Background background;
  std::atomic<unsigned> inside{0}, wrong{0};
  std::atomic<std::uint64_t> requested{0}, done{0};
  Background::Job job(background, [&] {
    if (++inside != 1) ++wrong;
    done = requested.load();
    --inside;
  });
  const auto work = [&] {
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t mine = ++requested;
      job.request();
      if (i % 8 != 0) continue;
      if (i % 16 == 0) {
        job.finish();
      } else {
        background.drain();
      }
      if (done < mine) ++wrong;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back(work);
  }
  job.finish();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(done, requested);
}

}  // namespace
}  // namespace perdix::detail::pool
