#include "util/zipf.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace perdix::detail::util {
namespace {

constexpr std::uint64_t kSeed = 2024;
constexpr int kDraws = 200'000;

double harmonic(std::uint64_t n, double theta) {
  double sum = 0;
  for (std::uint64_t k = 1; k <= n; ++k) sum += std::pow(static_cast<double>(k), -theta);
  return sum;
}

class ZipfTheta : public testing::TestWithParam<double> {};

TEST_P(ZipfTheta, FrequenciesFollowTheLaw) {
  const double theta = GetParam();
  constexpr std::uint64_t kItems = 1000;
  const Zipf zipf(kItems, theta);
  Random random(kSeed);
  std::vector<int> counts(kItems);
  for (int i = 0; i < kDraws; ++i) ++counts.at(zipf(random));
  const double sum = harmonic(kItems, theta);
  for (std::uint64_t rank : {0, 1, 2, 3, 10, 100, 999}) {
    const double expected = kDraws * std::pow(static_cast<double>(rank + 1), -theta) / sum;
    EXPECT_NEAR(counts[rank], expected, 5 * std::sqrt(expected) + 1)
        << "rank " << rank << " seed " << kSeed;
  }
}

INSTANTIATE_TEST_SUITE_P(Thetas, ZipfTheta, testing::Values(0.01, 0.5, 0.99, 1.0, 1.2, 1.9));

TEST(Zipf, WorksForOneItemAndForABillion) {
  Random random(kSeed);
  const Zipf one(1);
  const Zipf billion(1'000'000'000);
  int first = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(one(random), 0u);
    const std::uint64_t rank = billion(random);
    ASSERT_LT(rank, 1'000'000'000u);
    first += rank == 0;
  }
  // The sum for n = 10^9 and theta = 0.99 is about 23.6.
  EXPECT_NEAR(first, 10'000 / 23.6, 110);
}

TEST(ScrambledZipf, KeepsTheSkewAndSpreadsTheItems) {
  constexpr std::uint64_t kItems = 1000;
  const ScrambledZipf scrambled(kItems);
  Random random(kSeed);
  std::vector<int> counts(kItems);
  for (int i = 0; i < kDraws; ++i) ++counts.at(scrambled(random));
  const auto top =
      static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  EXPECT_EQ(top, static_cast<std::size_t>(
                     (static_cast<unsigned __int128>(hash(std::uint64_t{0})) * kItems) >> 64));
  EXPECT_GT(counts[top], kDraws / harmonic(kItems, 0.99) * 0.95);
}

TEST(Latest, FavoursTheNewestWhileGrowing) {
  Latest latest(10);
  Random random(kSeed);
  for (std::uint64_t items = 10; items < 2000; ++items) {
    latest.resize(items);
    ASSERT_LT(latest(random), items);
  }
  int newest = 0;
  for (int i = 0; i < kDraws; ++i) newest += latest(random) == 1998;
  EXPECT_NEAR(newest, kDraws / harmonic(1999, 0.99), 5 * std::sqrt(kDraws / 8.0));
}

}  // namespace
}  // namespace perdix::detail::util
