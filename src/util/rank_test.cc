#include "util/rank.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::detail::util {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

template <std::size_t N>
void expect_as_counted_one_by_one(const std::array<std::uint64_t, N>& numbers) {
  std::vector<std::uint64_t> limits = {0, 1, kMax / 2, kMax / 2 + 1, kMax - 1, kMax};
  for (const std::uint64_t number : numbers) {
    limits.push_back(number);
    limits.push_back(number - 1);
    limits.push_back(number + 1);
  }
  for (const std::uint64_t limit : limits)
    EXPECT_EQ(count_not_above(numbers, limit),
              std::ranges::count_if(numbers, [&](std::uint64_t n) { return n <= limit; }))
        << "of " << N << " numbers, limit " << limit;
}

template <std::size_t N>
void expect_right_of(std::uint64_t seed) {
  Random random(seed);
  std::array<std::uint64_t, N> numbers{};
  for (std::uint64_t& number : numbers) number = random();
  expect_as_counted_one_by_one(numbers);
  for (std::uint64_t& number : numbers) number %= 3;  // many are equal
  expect_as_counted_one_by_one(numbers);
  numbers.fill(kMax);
  expect_as_counted_one_by_one(numbers);
}

TEST(Rank, CountsAsOneByOne) {
  expect_right_of<1>(1);
  expect_right_of<3>(2);
  expect_right_of<8>(3);
  expect_right_of<16>(4);
  expect_right_of<19>(5);  // some in vectors, some behind them
}

// A comparison of vectors that took them for signed would see half of all keys at the wrong end.
TEST(Rank, NumbersHaveNoSign) {
  const std::array<std::uint64_t, 8> numbers = {1, 2, 3, 4, kMax / 2 + 1, kMax - 2, kMax - 1, kMax};
  EXPECT_EQ(count_not_above(numbers, kMax / 2), 4u);
  EXPECT_EQ(count_not_above(numbers, kMax), 8u);
  EXPECT_EQ(count_not_above(numbers, 0), 0u);
}

}  // namespace
}  // namespace perdix::detail::util
