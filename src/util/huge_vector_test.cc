#include "util/huge_vector.h"

#include <cstddef>
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

namespace perdix::detail::util {
namespace {

TEST(HugeVector, AlignsToHugePagesWhatFillsOne) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  for (const std::size_t bytes : {kHugePage, 5 * kHugePage / 2}) {
    const HugeVector<std::uint64_t> numbers(bytes / sizeof(std::uint64_t));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % kHugePage, 0u) << bytes;
  }
}

TEST(HugeVector, KeepsItsElementsWhenItGrows) {
  HugeVector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) numbers.push_back(i);
  HugeVector<std::uint64_t> expected(numbers.size());
  std::iota(expected.begin(), expected.end(), std::uint64_t{0});
  EXPECT_EQ(numbers, expected);
  numbers.swap(expected);
  EXPECT_EQ(numbers, expected);
}

}  // namespace
}  // namespace perdix::detail::util
