// How cursors and ranges move: what they read ahead, and what they do when they turn round or a
// call fails. Over engines they are tested by tests/conformance.
#include <ranges>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "index/test_map.h"

namespace perdix {
namespace {

using Number = TestMap::Number;
using NumberCursor = Cursor<TestMap, Number, Number>;
using Limits = std::vector<std::size_t>;

// An iterator that went back, or stayed while another one goes on, would depend on a key that may
// have gone: so algorithms and views that need one, std::views::reverse among them, are refused.
static_assert(std::ranges::input_range<TestMap::Range> && std::ranges::view<TestMap::Range>);
static_assert(!std::ranges::forward_range<TestMap::Range>);
static_assert(!std::ranges::forward_range<TestMap::Range::Reversed>);
template <class Iterator>
concept GoesBack = requires(Iterator i) {
  --i;
};
static_assert(!GoesBack<TestMap::Range::Iterator>);

TEST(Cursor, ReadsFewAtFirstAndThenMore) {
  const TestMap map(800);
  NumberCursor cursor(map);
  cursor.seek(0);
  EXPECT_EQ(map.limits, Limits());
  for (Number i = 0; i < 800; ++i, cursor.next()) ASSERT_EQ(cursor.key(), i);
  EXPECT_FALSE(cursor.valid());
  EXPECT_EQ(map.limits, (Limits{16, 32, 64, 128, 256, 256, 256, 256}));
  map.limits.clear();
  cursor.seek_last();
  for (Number i = 800; i-- > 0; cursor.prev()) ASSERT_EQ(cursor.key(), i);
  EXPECT_FALSE(cursor.valid());
  EXPECT_EQ(map.limits, (Limits{16, 32, 64, 128, 256, 256, 256, 256}));
}

TEST(Cursor, ReadsAnewWhenItTurnsRound) {
  TestMap map(100);
  NumberCursor cursor(map);
  cursor.seek(50);
  cursor.next();
  map.pairs.erase(50);
  map.pairs.erase(52);
  cursor.prev();
  EXPECT_EQ(cursor.key(), 49U);
  cursor.next();
  EXPECT_EQ(cursor.key(), 51U);
  cursor.next();
  EXPECT_EQ(cursor.key(), 53U);
  EXPECT_EQ(map.limits, (Limits{16, 16, 16}));
}

TEST(Cursor, StaysWhereItIsIfACallFails) {
  TestMap map(100);
  NumberCursor cursor(map);
  for (const bool up : {true, false}) {
    cursor.seek(10);
    map.fails = true;
    EXPECT_THROW(up ? cursor.next() : cursor.prev(), std::bad_alloc);
    ASSERT_TRUE(cursor.valid());
    EXPECT_EQ(cursor.key(), 10U);
    map.fails = false;
    up ? cursor.next() : cursor.prev();
    EXPECT_EQ(cursor.key(), up ? 11U : 9U);
  }
}

#ifndef NDEBUG
TEST(CursorDeathTest, SaysThatItHasNoPair) {
  const TestMap map(3);
  NumberCursor cursor(map);
  const auto expect_nothing_to_read = [&] {
    ASSERT_FALSE(cursor.valid());
    EXPECT_DEATH(cursor.pair(), "not valid");
    EXPECT_DEATH(cursor.key(), "not valid");
    EXPECT_DEATH(cursor.value(), "not valid");
    EXPECT_DEATH(cursor.next(), "not valid");
    EXPECT_DEATH(cursor.prev(), "not valid");
  };
  expect_nothing_to_read();
  cursor.seek(3);
  expect_nothing_to_read();
  cursor.seek_last();
  cursor.next();
  expect_nothing_to_read();
}

TEST(KeyRangeDeathTest, SaysThatItsEndHasNoPair) {
  const TestMap map(3);
  for (const Number bound : {2, 3}) {  // the cursor has a pair beyond it, or none
    const TestMap::Range range = map.range(bound - 1, bound);
    auto i = range.begin();
    EXPECT_EQ(i->first, bound - 1);
    ++i;
    EXPECT_DEATH(*i, "at the end");
    EXPECT_DEATH(i->first, "at the end");
  }
}
#endif

TEST(Cursor, IsNowhereAfterItWasMovedFrom) {
  const TestMap map(10);
  NumberCursor cursor(map);
  cursor.seek(3);
  const NumberCursor other = std::move(cursor);
  EXPECT_EQ(other.key(), 3U);
  EXPECT_FALSE(cursor.valid());  // NOLINT(bugprone-use-after-move)
}

TEST(KeyRange, KnowsItsFirstPair) {
  const TestMap map(10);
  EXPECT_EQ(map.range(3, 5).front(), TestMap::Pair(3, 3));
  EXPECT_EQ(map.range(3, 5).reversed().front(), TestMap::Pair(4, 4));
  EXPECT_EQ(map.range(3, 5).begin()->second, 3U);
  EXPECT_FALSE(map.range(3, 5).empty());
  for (const TestMap::Range& empty : {map.range(3, 3), map.range(5, 3), map.range(10)}) {
    EXPECT_TRUE(empty.empty());
    EXPECT_TRUE(empty.reversed().empty());
    EXPECT_EQ(empty.front(), std::nullopt);
    EXPECT_EQ(empty.reversed().front(), std::nullopt);
  }
}

TEST(KeyRange, EndsThoughItsBoundsGo) {
  TestMap map(100);
  std::vector<Number> shown;
  for (const auto& [key, value] : map.range(40, 60).reversed()) {
    shown.push_back(key);
    if (key == 59) map.pairs.erase(map.pairs.begin(), map.pairs.find(41));
    ASSERT_LE(shown.size(), 20U);
  }
  EXPECT_EQ(shown.size(), 19U);
  EXPECT_EQ(shown.back(), 41U);
}

}  // namespace
}  // namespace perdix
