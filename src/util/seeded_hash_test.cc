#include "util/seeded_hash.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "util/random.h"
#include "util/test_hash.h"

namespace perdix::detail::util {
namespace {

// Tables in persistent memory depend on these values.
TEST(SeededHash, IsTheSameInEveryRelease) {
  const SeededHash hash(1);
  EXPECT_EQ(hash(std::uint64_t{0}), 0xc809e34a9e159c01u);
  EXPECT_EQ(hash(std::uint64_t{1}), 0x1330377cd7935687u);
  EXPECT_EQ(hash(~std::uint64_t{0}), 0xd2cb446ef9b69ffeu);
  EXPECT_EQ(hash(std::string_view{}), 0xaa34f6d2b349d7d7u);
  EXPECT_EQ(hash(std::string_view("perdix")), 0xf2f0512dfb6cfd76u);
  EXPECT_EQ(hash(std::string(1000, 'p')), 0x8bb5b7133b293fb6u);
}

TEST(SeededHash, WithoutASeedIsHash) {
  const SeededHash none(0);
  Random random(1);
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t number = random();
    EXPECT_EQ(none(number), hash(number));
    EXPECT_EQ(none(text), hash(std::string_view(text)));
    text += static_cast<char>(number);
  }
}

TEST(SeededHash, DependsOnTheSeed) {
  const SeededHash one(1), other(2);
  for (std::uint64_t key = 0; key < 1000; ++key) {
    EXPECT_NE(one(key), other(key));
    EXPECT_NE(one(std::to_string(key)), other(std::to_string(key)));
  }
}

/// The greatest number of keys that share the first ten bits of their hash, and the ten bits that
/// choose a bucket.
template <class Key>
std::size_t most_alike(const SeededHash& hash, const std::vector<Key>& keys) {
  std::array<std::size_t, 1024> by_prefix{}, by_bucket{};
  for (const Key& key : keys) {
    ++by_prefix[hash(key) >> 54];
    ++by_bucket[hash(key) >> 22 & 1023];
  }
  return std::max(*std::max_element(by_prefix.begin(), by_prefix.end()),
                  *std::max_element(by_bucket.begin(), by_bucket.end()));
}

// 8192 random draws of 1024 give some value 22 times at most, mostly.
constexpr std::size_t kKeys = 8192, kMaxOfRandom = 32;

TEST(SeededHash, SpreadsNumbersThatHashAlikeWithoutASeed) {
  const std::vector<std::uint64_t> numbers = numbers_that_hash_alike(kKeys);
  ASSERT_EQ(most_alike(SeededHash(0), numbers), kKeys);
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    EXPECT_LE(most_alike(SeededHash(seed), numbers), kMaxOfRandom) << seed;
}

TEST(SeededHash, SpreadsNumbersInAnyOrder) {
  for (unsigned shift = 0; shift <= 48; shift += 4) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < kKeys; ++i) numbers.push_back(i << shift);
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      EXPECT_LE(most_alike(SeededHash(seed), numbers), kMaxOfRandom) << seed << ", " << shift;
  }
}

TEST(SeededHash, SpreadsTexts) {
  for (const std::size_t length : {0, 1, 8, 100, 1000}) {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < kKeys; ++i)
      texts.push_back(std::string(length, 'x') + std::to_string(i));
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      EXPECT_LE(most_alike(SeededHash(seed), texts), kMaxOfRandom) << seed << ", " << length;
  }
}

}  // namespace
}  // namespace perdix::detail::util
