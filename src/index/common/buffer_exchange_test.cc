// The lock of the home of a buffer that other threads may give away. What becomes of the pairs is
// tested with homes that have some (buffered_test.cc).
#include "index/common/buffer_exchange.h"

#include <mutex>

#include <gtest/gtest.h>

namespace perdix::detail::index {
namespace {

/// One buffer, which home 1 has.
struct OneBuffer {
  struct Buffer {};
  using Number = unsigned;
  using Place = unsigned;
  using Lock = std::mutex;

  Place place_of(const Buffer&) const { return home; }
  /// What another thread does before the lock is held.
  Lock& lock_at(Place) const {
    home = home_when_locked;
    return mutex;
  }
  const Buffer* of(Place place) const { return place == home ? &only : nullptr; }

  Buffer only;
  mutable Lock mutex;
  mutable Place home = 1;
  Place home_when_locked = 1;
};

class BufferExchangeTest : public testing::Test {
 protected:
  auto hold() { return buffers_.hold_home_of(buffers_.only, std::try_to_lock); }

  BufferExchange<OneBuffer> buffers_;
};

TEST_F(BufferExchangeTest, LocksTheHomeOfABuffer) {
  const auto held = hold();
  ASSERT_TRUE(held);
  EXPECT_EQ(held.place, 1U);
  EXPECT_FALSE(hold()) << "its lock is taken";
}

TEST_F(BufferExchangeTest, HoldsNoHomeOfABufferWithoutOne) {
  buffers_.home = 0;
  EXPECT_FALSE(hold());
}

TEST_F(BufferExchangeTest, LeavesAHomeThatLosesTheBufferBeforeItIsLocked) {
  for (const unsigned home : {0U, 2U}) {
    buffers_.home_when_locked = home;
    EXPECT_FALSE(hold()) << home;
    buffers_.home = 1;
  }
  EXPECT_TRUE(std::unique_lock(buffers_.mutex, std::try_to_lock)) << "the lock is released";
}

}  // namespace
}  // namespace perdix::detail::index
