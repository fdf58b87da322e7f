#include "util/hash.h"

#include <bit>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

#include "util/checksum.h"
#include "util/random.h"

namespace perdix::detail::util {
namespace {

// Tables in persistent memory depend on these values. That of the empty string is in the XXH3 test
// vectors.
TEST(Hash, IsTheSameInEveryRelease) {
  EXPECT_EQ(hash(std::string_view{}), 0x2d06800538d394c2u);
  EXPECT_EQ(hash(std::uint64_t{0}), 0xc77b3abb6f87acd9u);
}

TEST(Hash, OfAnIntegerIsThatOfItsBytes) {
  const auto expect_same = [](std::uint64_t key) {
    EXPECT_EQ(hash(key), hash(std::string_view(reinterpret_cast<const char*>(&key), sizeof key)))
        << key;
  };
  expect_same(0);
  expect_same(~std::uint64_t{0});
  for (unsigned bit = 0; bit < 64; ++bit) expect_same(std::uint64_t{1} << bit);
  Random random(1);
  for (int i = 0; i < 1000; ++i) expect_same(random());
}

TEST(Hash, SpreadsConsecutiveIntegers) {
  std::unordered_set<std::uint64_t> top_bits;
  for (std::uint64_t key = 0; key < 4096; ++key) top_bits.insert(hash(key) >> 48);
  EXPECT_GT(top_bits.size(), 3900u) << "4096 random draws of 65536 give about 3970 different ones";
}

TEST(Checksum, NoticesEachFlippedBitAndTheSeed) {
  std::string record(100, '\x5a');
  const std::uint64_t original = checksum(record.data(), record.size(), 7);
  EXPECT_EQ(checksum(record.data(), record.size(), 7), original);
  EXPECT_NE(checksum(record.data(), record.size(), 8), original);
  EXPECT_NE(checksum(record.data(), record.size() - 1, 7), original);
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(checksum(record.data(), record.size(), 7), original) << "bit " << bit;
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace perdix::detail::util
