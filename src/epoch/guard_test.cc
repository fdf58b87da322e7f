#include "epoch/guard.h"

#include <thread>

#include <gtest/gtest.h>

namespace perdix::detail::epoch {
namespace {

TEST(Guard, Nests) {
  EXPECT_FALSE(Guard::held());
  {
    const Guard outer;
    {
      const Guard inner;
      EXPECT_TRUE(Guard::held());
    }
    EXPECT_TRUE(Guard::held());
  }
  EXPECT_FALSE(Guard::held());
}

TEST(Guard, BelongsToItsThread) {
  const Guard guard;
  std::thread([] { EXPECT_FALSE(Guard::held()); }).join();
}

}  // namespace
}  // namespace perdix::detail::epoch
