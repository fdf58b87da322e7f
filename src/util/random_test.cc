#include "util/random.h"

#include <array>

#include <gtest/gtest.h>

namespace perdix::detail::util {
namespace {

TEST(Random, SameSeedSameSequence) {
  Random a(5), b(5), c(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t value = a();
    EXPECT_EQ(value, b());
    differs |= value != c();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, BelowIsUniformAndInRange) {
  Random random(1);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) ++counts.at(random.below(10));
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500) << "5 standard deviations are 474";
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, UniformIsInTheUnitInterval) {
  Random random(2);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.01);
}

}  // namespace
}  // namespace perdix::detail::util
