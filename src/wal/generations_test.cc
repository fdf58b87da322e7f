#include "wal/generations.h"

#include <limits>

#include <gtest/gtest.h>

#include "wal/survivors.h"
#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

constexpr std::uint64_t kMinBytes = 64 * sizeof(Record);

/// The stripes of a log that was written and closed, and their generations.
class GenerationsTest : public testing::Test {
 protected:
  GenerationsTest() {
    for (Owner owner = 1; owner <= 400; ++owner) fixture_.put(owner, owner, owner);
    Header& header = fixture_.header();
    for (unsigned i = 0; i < kStripes; ++i)
      stripes_.emplace_back(fixture_.pool(), header.stripes[i], header.seed, i,
                            generations_.marks());
    Survivors::Rings rings;
    for (unsigned i = 0; i < kStripes; ++i) rings[i] = &stripes_[i].segments();
    Survivors found(fixture_.pool(), header, rings);
    for (unsigned i = 0; i < kStripes; ++i) stripes_[i].open(found.scan(i));
  }

  Fixture fixture_;
  std::deque<Stripe> stripes_;
  Generations generations_{stripes_, kMinBytes};
};

TEST_F(GenerationsTest, CountsAppendedRecords) {
  EXPECT_EQ(generations_.appended(), fixture_.log().appended());
  EXPECT_EQ(generations_.oldest(), kNoGeneration) << "no chain of these stripes is open";
  for (const Position bound : generations_.needed())
    EXPECT_EQ(bound, std::numeric_limits<Position>::max());
}

TEST_F(GenerationsTest, SurvivingRecordsHaveAgesInTheirOrder) {
  generations_.mark_the_past();
  const Tails tails = generations_.tails();
  Generation youngest = 0;
  for (unsigned i = 0; i < kStripes; ++i) {
    Generation last = 0;
    for (Position at = stripes_[i].segments().start(); at < tails[i]; at += sizeof(Record)) {
      const Generation age = generations_.of_surviving(at);
      EXPECT_GE(age, last);
      EXPECT_LE(generations_.marks().at(age, i), at) << "its mark is behind the record";
      last = age;
    }
    youngest = std::max(youngest, last);
  }
  EXPECT_LT(youngest, generations_.marks().current()) << "that of new chains";
  EXPECT_GT(youngest, 1u);
}

TEST_F(GenerationsTest, OneBeginsAfterEnoughBytes) {
  const Generation before = generations_.marks().current();
  generations_.begin_if_due(0, false);
  EXPECT_EQ(generations_.marks().current(), before + 1);
  for (unsigned i = 0; i < kStripes; ++i)
    EXPECT_EQ(generations_.marks().at(before + 1, i), generations_.tails()[i]);
  generations_.begin_if_due(0, false);
  EXPECT_EQ(generations_.marks().current(), before + 1) << "nothing was appended since";
}

}  // namespace
}  // namespace perdix::detail::wal
