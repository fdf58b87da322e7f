// Commits that something follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alloc/calloc.h"
#include "alloc/test_space.h"

namespace perdix::detail::alloc {
namespace {

using ::testing::ElementsAre;

/// The action after a commit runs when the block is there after a crash, and while the record is.
TEST(Session, RunsTheActionAfterTheCommit) {
  TestSpace space(std::uint64_t{256} << 20);
  Calloc::format(space);
  Calloc calloc(space);
  Offset block = 0;
  unsigned calls = 0;
  {
    Session session = calloc.session();
    block = session.reserve(64);
    session.commit_then(pm::set_word(root(space), block), [&] {
      ++calls;
      const auto copy = kill_copy(space);
      EXPECT_EQ(root(*copy), block);
      EXPECT_THAT(blocks_of(Calloc(*copy)), ElementsAre(block));
      EXPECT_TRUE(session.logged());
    });
    EXPECT_FALSE(session.logged());
  }
  EXPECT_EQ(calls, 1U);
  EXPECT_THAT(blocks_of(Calloc(space)), ElementsAre(block));
}

}  // namespace
}  // namespace perdix::detail::alloc
