// Ranges under the views of the standard library. Not every compiler here can compile these.
#include <algorithm>
#include <ranges>
#include <vector>

#include <gtest/gtest.h>

#include "index/test_map.h"

namespace perdix {
namespace {

using Number = TestMap::Number;

template <class Range>
concept CanBeReversed = requires(Range range) {
  range | std::views::reverse;
};
static_assert(!CanBeReversed<TestMap::Range>);
static_assert(!CanBeReversed<TestMap::Range::Reversed>);
static_assert(!CanBeReversed<decltype(TestMap(0).range(0) | std::views::take(3))>);

template <class Keys>
std::vector<Number> all_of(Keys&& keys) {
  std::vector<Number> all;
  for (const Number key : keys) all.push_back(key);
  return all;
}

TEST(Views, GoOverRanges) {
  const TestMap map(200);
  const auto is_even = [](const TestMap::Pair& pair) { return pair.first % 2 == 0; };
  const auto twice = [](const TestMap::Pair& pair) { return 2 * pair.first; };
  using std::views::drop, std::views::filter, std::views::keys, std::views::take;
  EXPECT_EQ(all_of(map.range(5) | take(3) | keys), (std::vector<Number>{5, 6, 7}));
  EXPECT_EQ(all_of(map.range(5, 90) | drop(83) | keys), (std::vector<Number>{88, 89}));
  EXPECT_EQ(all_of(map.range(5, 9) | filter(is_even) | keys), (std::vector<Number>{6, 8}));
  EXPECT_EQ(all_of(map.range(5, 7) | std::views::transform(twice)), (std::vector<Number>{10, 12}));
  EXPECT_EQ(all_of(map.range(5).reversed() | take(3) | keys), (std::vector<Number>{199, 198, 197}));
  EXPECT_EQ(all_of(map.range(9, 9) | take(3) | keys), std::vector<Number>());
  EXPECT_EQ(std::ranges::count_if(map.range(5, 9), is_even), 2);
}

TEST(Views, StayInsideBesideWrites) {
  TestMap map(100);
  std::vector<Number> shown;
  for (const Number key : map.range(40, 60).reversed() | std::views::keys) {
    shown.push_back(key);
    map.pairs.erase(key);
    map.pairs.erase(40);
    ASSERT_LE(shown.size(), 20U);
  }
  EXPECT_EQ(shown.size(), 19U);
  EXPECT_EQ(map.pairs.size(), 80U);
}

}  // namespace
}  // namespace perdix
