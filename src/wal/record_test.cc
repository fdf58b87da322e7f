// Where in a segment records lie.
#include "wal/record.h"

#include <set>

#include <gtest/gtest.h>

namespace perdix::detail::wal {
namespace {

constexpr unsigned kStripe = 5;
constexpr Position kBegin = first_position(kStripe) + 7 * kSegmentSize;
constexpr Position kEnd = kBegin + kSegmentSize;

TEST(Record, HasAPlaceOfItsOwnInTheSegment) {
  std::set<std::uint64_t> places;
  for (Position position = kBegin; position < kEnd; position += sizeof(Record)) {
    const std::uint64_t place = written_at(position);
    EXPECT_EQ(place % sizeof(Record), 0u);
    EXPECT_LT(place, kSegmentSize);
    EXPECT_TRUE(places.insert(place).second) << "two records at " << place;
  }
  EXPECT_EQ(places.size(), kSegmentSize / sizeof(Record));
  EXPECT_EQ(written_at(kBegin), 0u);
}

TEST(Record, LiesInALineThatWasNotWrittenAMomentAgo) {
  constexpr unsigned kApart = 8;
  const auto line = [](Position position) {
    return segment_begin(position) + written_at(position) / pm::kLineSize;
  };
  for (Position position = kBegin; position < kEnd; position += sizeof(Record)) {
    for (unsigned ago = 1; ago < kApart; ++ago) {
      EXPECT_NE(line(position), line(position - ago * sizeof(Record)))
          << ago << " records before " << position;
    }
  }
}

}  // namespace
}  // namespace perdix::detail::wal
