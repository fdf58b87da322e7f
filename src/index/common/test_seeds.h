// What tests of engines whose indexes keep a seed of their hashes have in common.
#pragma once

#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

namespace perdix::detail::index {

/// seed_of(name) opens an index, creates it if there is none, and closes it: an index has a seed of
/// its own, which the next opening finds.
template <class SeedOf>
void expect_drawn_seeds(SeedOf seed_of) {
  const std::uint64_t first = seed_of("a"), second = seed_of("b");
  EXPECT_NE(first, 0u);
  EXPECT_NE(first, second);
  EXPECT_EQ(seed_of("a"), first);
  EXPECT_EQ(seed_of("b"), second);
}

}  // namespace perdix::detail::index
