#include "ycsb/keys.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include <gtest/gtest.h>

namespace perdix::bench {
namespace {

// The inverse of y = x ^ (x >> shift).
std::uint64_t undo_shift(std::uint64_t y, int shift) {
  std::uint64_t x = y;
  for (int known = shift; known < 64; known += shift) x = y ^ (x >> shift);
  return x;
}

// The inverse of multiplication by an odd number modulo 2^64, by Newton's iteration.
std::uint64_t inverse_of(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

std::uint64_t unmix(std::uint64_t y) {
  y = undo_shift(y, 31) * inverse_of(0x94d049bb133111eb);
  y = undo_shift(y, 27) * inverse_of(0xbf58476d1ce4e5b9);
  return undo_shift(y, 30);
}

TEST(Mix, IsInvertible) {
  for (std::uint64_t x = 0; x < 10'000; ++x) {
    EXPECT_EQ(unmix(mix(x)), x);
    EXPECT_EQ(unmix(mix(~x)), ~x);
    EXPECT_EQ(unmix(mix(x << 40)), x << 40);
  }
}

class KeySpreadTest : public testing::TestWithParam<KeyOrder> {};

TEST_P(KeySpreadTest, PresentAndAbsentKeysAllDiffer) {
  const KeySpread spread(GetParam(), 7);
  std::unordered_set<std::uint64_t> keys;
  constexpr std::uint64_t kNumbers = 50'000;
  for (std::uint64_t n = 0; n < kNumbers; ++n) {
    keys.insert(spread.present(n));
    keys.insert(spread.absent(n));
  }
  EXPECT_EQ(keys.size(), 2 * kNumbers);
}

INSTANTIATE_TEST_SUITE_P(Orders, KeySpreadTest,
                         testing::Values(KeyOrder::random, KeyOrder::sequential),
                         [](const auto& order) {
                           return order.param == KeyOrder::random ? "random" : "sequential";
                         });

TEST(KeySpread, SequentialKeysAscend) {
  const KeySpread spread(KeyOrder::sequential, 7);
  for (std::uint64_t n = 1; n < 1000; ++n) EXPECT_LT(spread.present(n - 1), spread.present(n));
}

TEST(KeySpread, RandomKeysFillTheRangeEvenly) {
  const KeySpread spread(KeyOrder::random, 7);
  constexpr std::uint64_t kNumbers = 64'000;
  std::array<std::uint64_t, 64> counts{};
  for (std::uint64_t n = 0; n < kNumbers; ++n) ++counts[spread.present(n) >> 58];
  // 1000 expected in each, with a standard deviation of 31.4.
  for (const std::uint64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 1000, 200);
}

TEST(KeySpread, SeedsChangeTheKeys) {
  EXPECT_NE(KeySpread(KeyOrder::random, 1).present(0), KeySpread(KeyOrder::random, 2).present(0));
}

Dataset byte_dataset(std::size_t key_size, std::size_t value_size) {
  return {{Kind::bytes, Kind::bytes, key_size, value_size}, KeyOrder::random, 3};
}

TEST(ByteKeys, HaveTheRequestedSize) {
  for (const std::size_t size : {16, 17, 20, 24, 64}) {
    KeySource<std::string> keys(byte_dataset(size, 8));
    EXPECT_EQ(keys.present(5).size(), size);
  }
}

TEST(ByteKeys, ReadLikeYcsbKeys) {
  KeySource<std::string> keys(byte_dataset(24, 8));
  const std::string key(keys.present(5));
  EXPECT_EQ(key.substr(0, 8), "user0000");
  EXPECT_TRUE(std::ranges::all_of(key.substr(8), [](unsigned char c) { return std::isxdigit(c); }));
}

TEST(ByteKeys, SortAsTheirNumbersDo) {
  const Dataset data = byte_dataset(24, 8);
  KeySource<std::string> bytes(data);
  const KeySpread numbers(data.order, data.seed);
  for (std::uint64_t n = 1; n < 1000; ++n) {
    const std::string before(bytes.present(n - 1));
    const std::string after(bytes.present(n));
    EXPECT_EQ(before < after, numbers.present(n - 1) < numbers.present(n));
  }
}

TEST(Values, HaveTheRequestedSizeAndChangeWithTheVersion) {
  const Dataset data = byte_dataset(24, 100);
  const ValueSource<std::string> values(data);
  EXPECT_EQ(values.of(1, 0).size(), 100);
  EXPECT_EQ(values.of(1, 0), values.of(1, 0));
  EXPECT_NE(values.of(1, 0), values.of(1, 1));
  EXPECT_NE(values.of(1, 0), values.of(2, 0));
}

}  // namespace
}  // namespace perdix::bench
