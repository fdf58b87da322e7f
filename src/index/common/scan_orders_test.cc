// What is kept of the order of leaves, and when it counts.
#include "index/common/scan_orders.h"

#include <algorithm>
#include <array>
#include <atomic>
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

  /// The order counts for the stamp, and has first the settled places and then the fresh ones.
  void expect_order(ScanOrders::Number leaf, ScanOrders::Stamp stamp,
                    const std::vector<unsigned>& settled, const std::vector<unsigned>& fresh) {
    const epoch::Guard guard;
    Places found;
    ASSERT_TRUE(orders_.read(leaf, stamp, found));
    const auto begin = found.span().begin(), middle = begin + found.settled().size();
    EXPECT_EQ(std::vector<unsigned>(begin, middle), settled);
    EXPECT_EQ(std::vector<unsigned>(middle, found.span().end()), fresh);
    EXPECT_EQ(found.fresh(), fresh.size());
  }

  void add(ScanOrders::Number leaf, ScanOrders::Stamp before, PlaceInLeaf place) {
    const epoch::Guard guard;
    orders_.add(leaf, before, before + 1, place);
  }

  void remove(ScanOrders::Number leaf, ScanOrders::Stamp before, PlaceInLeaf place) {
    const epoch::Guard guard;
    orders_.follow(leaf, before, before + 1, [&](Places& places) { return places.remove(place); });
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

TEST_F(ScanOrdersTest, AreCarriedOverToTheNextState) {
  keep(2, 10, places(3));
  add(2, 10, 9);
  EXPECT_TRUE(has_none(2, 10));
  expect_order(2, 11, {0, 1, 2}, {9});
  add(2, 11, 4);
  expect_order(2, 12, {0, 1, 2}, {9, 4});
  remove(2, 12, 1);
  expect_order(2, 13, {0, 2}, {9, 4});
  remove(2, 13, 9);
  expect_order(2, 14, {0, 2}, {4});
  orders_.restamp(2, 14, 15);
  EXPECT_TRUE(has_none(2, 14));
  expect_order(2, 15, {0, 2}, {4});
  orders_.outdate(2, 14);
  expect_order(2, 15, {0, 2}, {4});
  orders_.outdate(2, 15);
  EXPECT_TRUE(has_none(2, 15));
  add(2, 15, 5);
  EXPECT_TRUE(has_none(2, 16)) << "an order that is outdated stays so";
}

TEST_F(ScanOrdersTest, AreOutdatedByAChangeThatIsNotTheNextOne) {
  keep(2, 10, places(3));
  add(2, 9, 9);
  add(2, 11, 9);
  EXPECT_TRUE(has(2, 10, places(3)));
  remove(2, 10, 7);
  EXPECT_TRUE(has(2, 10, places(3))) << "what can't be followed changes nothing";
  EXPECT_TRUE(has_none(2, 11));
  add(3, 10, 9);
  remove(100'000, 10, 9);
  EXPECT_TRUE(has_none(3, 11)) << "there was none";
}

TEST_F(ScanOrdersTest, LoseAPlaceWhereverItIs) {
  for (const unsigned count : {1u, 8u, 9u, 50u, 128u, Places::kMaxPlaces}) {
    for (unsigned gone = 0; gone < count; ++gone) {
      keep(0, 0, places(count));
      orders_.remove(0, 0, 1, static_cast<PlaceInLeaf>(gone));
      std::vector<unsigned> left = listed(places(count));
      left.erase(left.begin() + gone);
      expect_order(0, 1, left, {});
      orders_.remove(0, 1, 2, static_cast<PlaceInLeaf>(gone));
      expect_order(0, 2, left, {});
    }
  }
}

TEST_F(ScanOrdersTest, LoseFreshPlaces) {
  keep(0, 0, places(12));
  for (const unsigned place : {20, 21, 22}) add(0, place - 20, static_cast<PlaceInLeaf>(place));
  orders_.remove(0, 3, 4, 21);
  orders_.remove(0, 4, 5, 0);
  orders_.remove(0, 5, 6, 22);
  expect_order(0, 6, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {20});
}

TEST_F(ScanOrdersTest, HaveRoomForSomeFreshPlaces) {
  for (const unsigned count : {20u, 60u, 128u, Places::kMaxPlaces}) {
    keep(count, 0, places(count));
    ScanOrders::Stamp stamp = 0;
    for (Places found; stamp < 100; ++stamp) {
      add(count, stamp, 159);
      if (has_none(count, stamp + 1)) break;
    }
    EXPECT_LE(stamp, Places::kMaxFresh) << count;
    if (count < Places::kMaxPlaces) {
      EXPECT_GE(stamp, 8u) << count;
    }
    keep(count, 1000, places(count));
    EXPECT_TRUE(has(count, 1000, places(count))) << "what did not fit is made anew";
  }
}

TEST_F(ScanOrdersTest, FreshPlacesAreKeptWhereTheyBelong) {
  keep(2, 10, places(3));
  add(2, 10, 9);
  keep(2, 11, places(4));
  EXPECT_TRUE(has(2, 11, places(4)));
  keep(2, 11, places(5));
  EXPECT_TRUE(has(2, 11, places(4))) << "an order without fresh places is what it is";
}

TEST(PlacesTest, FreshOnesSettle) {
  epoch::Reclaimer reclaimer(false);
  util::Arena arena;
  ScanOrders orders(arena, reclaimer);
  const epoch::DrainFirst drain{reclaimer};
  const epoch::Guard guard;
  Places places;
  for (const unsigned place : {10, 20, 30}) places.push(static_cast<PlaceInLeaf>(place));
  orders.keep_order(0, 0, places);
  for (const unsigned place : {25, 5, 35, 26}) {
    const ScanOrders::Stamp stamp = places.size() - 3;
    orders.add(0, stamp, stamp + 1, static_cast<PlaceInLeaf>(place));
    ASSERT_TRUE(orders.read(0, stamp + 1, places));
  }
  places.settle([](PlaceInLeaf a, PlaceInLeaf b) { return a < b; });
  EXPECT_EQ(places.fresh(), 0u);
  EXPECT_TRUE(std::ranges::equal(places.span(), std::array{5, 10, 20, 25, 26, 30, 35}));
  places.rename(26, 40);
  EXPECT_TRUE(places.remove(40));
  EXPECT_FALSE(places.remove(26));
  EXPECT_EQ(places.size(), 6u);
}

// One writer carries an order over, forward and back, while others make it anew from what they
// have read: whoever finds the places of a stamp has those of its state.
TEST_F(ScanOrdersTest, AReaderHasAllPlacesOfAStateThatWasCarriedOver) {
  constexpr unsigned kRounds = 200'000, kSettled = 40, kStates = 6;
  std::atomic<bool> done{false};
  std::atomic<unsigned> read{0}, fresh{0};
  const auto places_of = [](ScanOrders::Stamp stamp) {
    return places(kSettled + static_cast<unsigned>(stamp));
  };
  keep(9, 0, places_of(0));
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      for (unsigned round = 0; round < kRounds; ++round) {
        const epoch::Guard guard;
        const ScanOrders::Stamp stamp = round % kStates;
        if (stamp + 1 < kStates) {
          orders_.add(9, stamp, stamp + 1, static_cast<PlaceInLeaf>(kSettled + stamp));
        } else {
          orders_.follow(9, stamp, 0, [&](Places& places) {
            for (unsigned i = 0; i < kStates - 1; ++i)
              places.remove(static_cast<PlaceInLeaf>(kSettled + i));
            return true;
          });
        }
      }
      done = true;
    });
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = t; !done || read == 0; ++i) {
          const epoch::Guard guard;
          Places found;
          const ScanOrders::Stamp stamp = i % kStates;
          const bool kept = orders_.read(9, stamp, found);
          if (kept) {
            ASSERT_EQ(listed(found), listed(places_of(stamp)));
            ++read;
            fresh += found.fresh() > 0 ? 1 : 0;
          }
          if (!kept || i % 16 == 0) orders_.keep_order(9, stamp, places_of(stamp));
        }
      });
    }
  }
  EXPECT_GT(read, 0u);
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
