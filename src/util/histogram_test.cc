#include "util/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::detail::util {
namespace {

std::uint64_t exact_percentile(const std::vector<std::uint64_t>& sorted, double percent) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.percentile(50), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 256; ++value) histogram.record(value);
  for (std::uint64_t value = 0; value < 256; ++value) {
    EXPECT_EQ(histogram.percentile(static_cast<double>(value + 1) / 256 * 100), value);
  }
  EXPECT_EQ(histogram.mean(), 127.5);
}

TEST(Histogram, PercentilesAreWithinOnePercent) {
  constexpr std::uint64_t kSeed = 42;
  Random random(kSeed);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random() >> random.below(64));  // all magnitudes
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double percent = 0; percent <= 100; percent += 0.1) {
    const auto exact = static_cast<double>(exact_percentile(values, percent));
    EXPECT_NEAR(static_cast<double>(histogram.percentile(percent)), exact, exact * 0.01)
        << percent << " seed " << kSeed;
  }
  EXPECT_EQ(histogram.percentile(100), values.back());
  EXPECT_EQ(histogram.max(), values.back());
  EXPECT_EQ(histogram.min(), values.front());
}

TEST(Histogram, HasABucketForEveryValue) {
  Histogram histogram;
  histogram.record(~std::uint64_t{0});
  histogram.record(0);
  EXPECT_EQ(histogram.percentile(100), ~std::uint64_t{0});
  EXPECT_EQ(histogram.percentile(1), 0u);
}

TEST(Histogram, MergeEqualsRecordingTogether) {
  Random random(7);
  Histogram first, second, both;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random.below(1'000'000);
    (i % 3 == 0 ? first : second).record(value);
    both.record(value);
  }
  first.merge(second);
  EXPECT_EQ(first.count(), both.count());
  EXPECT_EQ(first.max(), both.max());
  EXPECT_EQ(first.min(), both.min());
  EXPECT_DOUBLE_EQ(first.mean(), both.mean());
  for (double percent : {1.0, 50.0, 99.0, 99.9})
    EXPECT_EQ(first.percentile(percent), both.percentile(percent));
}

}  // namespace
}  // namespace perdix::detail::util
