#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "util/test_eventually.h"

namespace perdix::detail::util {
namespace {

TEST(Eventually, ReturnsWhenAnotherThreadHasDoneIt) {
  std::atomic<int> count{0};
  const std::jthread other([&] {
    for (int i = 0; i < 3; ++i) ++count;
  });
  eventually_reaches("the other thread has counted to 3", count, 3);
  eventually_reaches(
      "it is still so", [&] { return count.load(); }, 3);
  EXPECT_EQ(count, 3);
}

TEST(Eventually, LooksOnceMoreWhenItsTimeIsOver) {
  int looks = 0;
  EXPECT_TRUE(comes_about([&] { return ++looks == 2; }, std::chrono::seconds(-1)));
  EXPECT_FALSE(comes_about([] { return false; }, std::chrono::seconds(-1)));
}

TEST(Eventually, SaysForWhatItHasWaitedAndWhatThereIs) {
  const auto give_up = [] {
    eventually(
        "all is well", [] { return false; }, [] { return "2 of 3"; }, std::chrono::seconds(-1));
  };
  EXPECT_DEATH(give_up(), "Eventually.SaysForWhat.* until all is well. State: 2 of 3");
}

TEST(Eventually, KnowsAFutureThatHasItsValue) {
  std::promise<int> promise;
  const std::future<int> future = promise.get_future();
  EXPECT_FALSE(is_ready(future));
  promise.set_value(1);
  EXPECT_TRUE(is_ready(future));
}

}  // namespace
}  // namespace perdix::detail::util
