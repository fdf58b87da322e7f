#include "wal/cursors.h"

#include <gtest/gtest.h>

namespace perdix::detail::wal {
namespace {

TEST(Cursors, AThreadStaysWhereItWent) {
  Cursors cursors;
  EXPECT_LT(cursors.stripe(), kStripes);
  for (unsigned stripe = 0; stripe < kStripes; ++stripe) {
    cursors.go_to(stripe);
    EXPECT_EQ(cursors.stripe(), stripe);
  }
}

TEST(Cursors, ALookIsDueOnce) {
  Cursors cursors;
  EXPECT_FALSE(cursors.take_look());
  cursors.make_look_due();
  EXPECT_TRUE(cursors.take_look());
  EXPECT_FALSE(cursors.take_look());
}

TEST(Cursors, ALookIsDueAfterSomeRefusals) {
  Cursors cursors;
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 1; i < Cursors::kRefusalsPerLook; ++i) cursors.note_refusal();
    EXPECT_FALSE(cursors.take_look());
    cursors.note_refusal();
    EXPECT_TRUE(cursors.take_look());
  }
}

}  // namespace
}  // namespace perdix::detail::wal
