// Keys of all shapes are sorted.
#include "index/common/bucket_sort.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::detail::index {
namespace {

constexpr unsigned kMax = 160;

struct Numbered {
  std::uint64_t key;
  unsigned number;  // in the order in which they are given

  friend bool operator==(const Numbered&, const Numbered&) = default;
};

void expect_sorted(std::vector<Numbered> items) {
  std::vector<Numbered> expected = items;
  std::ranges::stable_sort(expected, {}, &Numbered::key);
  bucket_sort<kMax>(std::span(items));
  EXPECT_EQ(items, expected);
}

/// `make(random)` is a key.
template <class Make>
void expect_sorted_keys(Make make) {
  util::Random random(7);
  for (unsigned size = 0; size <= kMax; ++size) {
    std::vector<Numbered> items;
    for (unsigned i = 0; i < size; ++i) items.push_back({make(random), i});
    expect_sorted(items);
  }
}

TEST(BucketSort, OfAllRanges) {
  for (unsigned bits = 0; bits < 64; ++bits)
    expect_sorted_keys([&](util::Random& random) { return random() >> bits; });
  expect_sorted_keys([](util::Random& random) { return ~std::uint64_t{0} - random.below(40'000); });
}

TEST(BucketSort, OfKeysThatLieCloseTogether) {
  expect_sorted_keys([](util::Random& random) {
    return random.one_in(40) ? ~std::uint64_t{0} - random.below(3) : random.below(1000);
  });
  expect_sorted_keys([](util::Random& random) { return random.below(2) << 63; });
}

TEST(BucketSort, OfSortedKeys) {
  std::vector<Numbered> items;
  for (unsigned i = 0; i < kMax; ++i) items.push_back({i * 1000, i});
  expect_sorted(items);
  std::ranges::reverse(items);
  expect_sorted(items);
}

}  // namespace
}  // namespace perdix::detail::index
