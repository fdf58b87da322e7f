#include "alloc/run_buckets.h"

#include <array>

#include <gtest/gtest.h>

namespace perdix::detail::alloc {
namespace {

TEST(RunBuckets, FindsARunThatIsLongEnough) {
  RunBuckets buckets;
  EXPECT_EQ(buckets.find(1), nullptr);
  std::array<SpanMap, 3> maps;
  constexpr std::array<unsigned, 3> kLengths = {3, 5, 40};
  for (unsigned i = 0; i < maps.size(); ++i) {
    maps[i].free.add(10, kLengths[i]);
    buckets.add(maps[i]);
  }
  for (unsigned spans = 1; spans <= 40; ++spans) {
    const SpanMap* found = buckets.find(spans);
    ASSERT_NE(found, nullptr) << spans;
    EXPECT_GE(found->free.longest_run(), spans);
  }
  EXPECT_EQ(buckets.find(41), nullptr);
  EXPECT_EQ(buckets.find(3), &maps[0]) << "longer runs are kept whole";
  buckets.remove(maps[2]);
  EXPECT_EQ(buckets.find(6), nullptr);
}

TEST(RunBuckets, ListsAMapByWhatIsLeftOfIt) {
  RunBuckets buckets;
  SpanMap map;
  map.free.add(8, 16);
  buckets.add(map);
  EXPECT_EQ(buckets.free(), 16u);
  EXPECT_EQ(buckets.take(map, 10), 8u);
  EXPECT_EQ(buckets.free(), 6u);
  EXPECT_EQ(buckets.find(6), &map);
  EXPECT_EQ(buckets.find(7), nullptr);
  EXPECT_EQ(buckets.take(map, 6), 18u);
  EXPECT_EQ(buckets.find(1), nullptr);
  EXPECT_EQ(buckets.free(), 0u);
  buckets.give_back(map, 8, 16);
  EXPECT_EQ(buckets.free(), 16u);
  EXPECT_EQ(buckets.find(16), &map);
}

TEST(RunBuckets, ListsMapsOfOneLength) {
  RunBuckets buckets;
  std::array<SpanMap, 3> maps;
  for (SpanMap& map : maps) {
    map.free.add(1, kMaxRun);
    buckets.add(map);
  }
  buckets.remove(maps[1]);
  EXPECT_EQ(buckets.longest(), &maps[2]);
  EXPECT_EQ(maps[2].next, &maps[0]);
  EXPECT_EQ(maps[0].next, nullptr);
  EXPECT_EQ(maps[0].previous, &maps[2]);
}

}  // namespace
}  // namespace perdix::detail::alloc
