// What is kept of the order of leaves, and when it counts.
#include "index/common/scan_orders.h"

#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"

namespace perdix::detail::index {
namespace {

class ScanOrdersTest : public testing::Test {
 protected:
  /// Places first, first + 1, ...
  static Places places(unsigned count, unsigned first = 0) {
    Places made;
    for (unsigned i = 0; i < count; ++i) made.push(static_cast<PlaceInLeaf>(first + i));
    return made;
  }

  static std::vector<unsigned> listed(const Places& places) {
    return {places.span().begin(), places.span().end()};
  }

  /// What is read is what was kept.
  bool has(ScanOrders::Number leaf, ScanOrders::Stamp stamp, const Places& expected) const {
    const epoch::Guard guard;
    Places found;
    return orders_.read(leaf, stamp, found) && listed(found) == listed(expected);
  }

  bool has_none(ScanOrders::Number leaf, ScanOrders::Stamp stamp) const {
    const epoch::Guard guard;
    Places found;
    return !orders_.read(leaf, stamp, found);
  }

  void keep(ScanOrders::Number leaf, ScanOrders::Stamp stamp, const Places& places) {
    const epoch::Guard guard;
    orders_.keep_order(leaf, stamp, places);
  }

  epoch::Reclaimer reclaimer_{false};
  util::Arena arena_;
  ScanOrders orders_{arena_, reclaimer_};
  epoch::DrainFirst drain_{reclaimer_};
};

TEST_F(ScanOrdersTest, TakeNothingBeforeAnOrderIsKept) {
  EXPECT_TRUE(has_none(0, 0));
  EXPECT_TRUE(has_none(1'000'000, 0));
  EXPECT_EQ(orders_.bytes_in_use(), 0u);
  EXPECT_EQ(arena_.bytes_in_use(), 0u);
}

TEST_F(ScanOrdersTest, CountForTheirStampOnly) {
  keep(7, 40, places(90));
  EXPECT_TRUE(has(7, 40, places(90)));
  EXPECT_TRUE(has_none(7, 36));
  EXPECT_TRUE(has_none(7, 44));
  EXPECT_TRUE(has_none(6, 40)) << "another leaf's";
  keep(7, 44, places(91, 3));
  EXPECT_TRUE(has(7, 44, places(91, 3)));
  EXPECT_TRUE(has_none(7, 40));
}

TEST_F(ScanOrdersTest, ANewOrderBelongsToNoState) {
  keep(3, 0, places(1));
  orders_.forget(3);
  EXPECT_TRUE(has_none(3, 0));
  keep(3, 4, places(2));
  EXPECT_TRUE(has_none(3, 0));
}

TEST_F(ScanOrdersTest, FormerPlacesAreReadEvenIfTheyDoNotCount) {
  keep(1, 4, places(5));
  const epoch::Guard guard;
  Places found;
  EXPECT_FALSE(orders_.read(1, 8, found));
  EXPECT_EQ(listed(found), listed(places(5)));
}

TEST_F(ScanOrdersTest, GrowAndShrinkWithTheirLeaf) {
  for (const unsigned count : {0u, 1u, 8u, 9u, 64u, 128u, 156u, Places::kMaxPlaces, 3u, 0u, 50u}) {
    keep(5, count * 4, places(count));
    EXPECT_TRUE(has(5, count * 4, places(count))) << count;
  }
}

TEST_F(ScanOrdersTest, EachLeafHasItsOwn) {
  std::vector<ScanOrders::Number> leaves(2000);
  std::iota(leaves.begin(), leaves.end(), 0);
  leaves.insert(leaves.end(), {10'000, 65'535, 65'536, 300'000, 1'000'000});
  for (const auto leaf : leaves) keep(leaf, leaf + 1, places(1 + leaf % 100));
  for (const auto leaf : leaves) EXPECT_TRUE(has(leaf, leaf + 1, places(1 + leaf % 100))) << leaf;
}

TEST_F(ScanOrdersTest, TakeAByteForEachPairAndSomeForEachLeaf) {
  constexpr unsigned kLeaves = 400, kPairs = 100;
  for (unsigned leaf = 0; leaf < kLeaves; ++leaf) keep(leaf, 0, places(kPairs));
  EXPECT_EQ(orders_.bytes_in_use(), arena_.bytes_in_use());
  EXPECT_LE(orders_.bytes_in_use(), kLeaves * (kPairs + 28) + 5000) << "the table has a page";
}

TEST_F(ScanOrdersTest, StayWithinTheBudget) {
  constexpr std::uint64_t kBudget = 10'000;
  orders_.set_budget(kBudget);
  unsigned kept = 0;
  for (unsigned leaf = 0; leaf < 500; ++leaf) {
    keep(leaf, 0, places(100));
    kept += has(leaf, 0, places(100)) ? 1 : 0;
    EXPECT_LE(orders_.bytes_in_use(), kBudget);
  }
  EXPECT_GT(kept, 30u);
  EXPECT_LT(kept, 60u);
  orders_.forget(0);
  keep(400, 0, places(100));
  EXPECT_TRUE(has(400, 0, places(100))) << "what is forgotten makes room";
  keep(1000, 0, places(100));
  EXPECT_TRUE(has_none(1000, 0)) << "there is no room for more of the table";
}

TEST_F(ScanOrdersTest, ABudgetOfNothingKeepsNothing) {
  orders_.set_budget(0);
  keep(0, 0, places(1));
  EXPECT_TRUE(has_none(0, 0));
  EXPECT_EQ(arena_.bytes_in_use(), 0u);
}

TEST_F(ScanOrdersTest, ReleasesForgottenOrders) {
  keep(0, 0, places(1));
  const std::size_t table = arena_.bytes_in_use();
  for (int round = 0; round < 3; ++round) {
    keep(1, 0, places(100));
    keep(1, 4, places(150));  // in a larger one; the former is retired
    orders_.forget(1);
    orders_.forget(1);
    orders_.forget(100'000);
    EXPECT_TRUE(has_none(1, 4));
    reclaimer_.drain();
    EXPECT_EQ(arena_.bytes_in_use(), table);
    EXPECT_EQ(orders_.bytes_in_use(), table);
  }
}

/// The number of stamps, which come again and again.
class ScanOrdersOfStamps : public ScanOrdersTest, public ::testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Few, ScanOrdersOfStamps, ::testing::Values(2, 24));

// Concurrent writers of one order, and readers: a reader that finds the places of a stamp has all
// of them.
TEST_P(ScanOrdersOfStamps, AReaderHasAllPlacesOfAStampOrNone) {
  constexpr unsigned kRounds = 200'000;
  const unsigned stamps = GetParam();
  const auto places_of = [](ScanOrders::Stamp stamp) {
    const auto number = static_cast<unsigned>(stamp);
    return places(40 + 5 * number, number);
  };
  std::atomic<bool> done{false};
  std::atomic<unsigned> read{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < kRounds; ++i) {
          const ScanOrders::Stamp stamp = (i * (t + 1) + i / stamps) % stamps;
          keep(9, stamp, places_of(stamp));
        }
        done = true;
      });
    }
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = t; !done || read == 0; ++i) {
          const epoch::Guard guard;
          Places found;
          if (!orders_.read(9, i % stamps, found)) continue;
          ASSERT_EQ(listed(found), listed(places_of(i % stamps)));
          ++read;
        }
      });
    }
  }
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace perdix::detail::index
