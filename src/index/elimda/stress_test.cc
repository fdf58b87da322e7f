// Many threads in few logs, buckets and segments, so that flushes, relocations and splits meet all
// calls.
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_stress.h"
#include "index/elimda/test_map.h"
#include "util/random.h"

namespace perdix::detail::index::elimda {
namespace {

using Number = std::uint64_t;

constexpr unsigned kThreads = 4;

/// Pairs come straight to the table.
template <class K, class V>
class StraightMap : public TestMap<K, V> {
 public:
  StraightMap() : TestMap<K, V>(kSmall, MediaUnits::never) {}
};

TEST(ElimDaStress, Numbers) { StressRun<TestMap<Number, Number>, Number>().run(); }
TEST(ElimDaStress, Strings) { StressRun<TestMap<std::string, Number>, std::string>().run(); }
TEST(ElimDaStress, StraightNumbers) { StressRun<StraightMap<Number, Number>, Number>().run(); }
TEST(ElimDaStress, StraightStrings) {
  StressRun<StraightMap<std::string, Number>, std::string>().run();
}

TEST(ElimDaStress, OneOfSeveralInsertsWins) {
  for (const MediaUnits units : {MediaUnits::always, MediaUnits::never}) {
    TestMap<Number, Number> map(kSmall, units);
    one_of_several_inserts_wins(map, kEightKeys);
  }
}

/// Keys that are there all the time are found, with their first values, while others come, and with
/// duplicates of theirs on the way through all layers; and for_each shows each of them once.
TEST(ElimDaStress, FindsPairsOnTheirWayThroughTheLayers) {
  constexpr Number kStay = 200, kCome = 20000;
  TestMap<Number, Number> map;
  for (Number i = 0; i < kStay; ++i) map->insert(i, i * 3);
  std::atomic<bool> done{false};
  {
    std::vector<std::jthread> readers;
    readers.emplace_back([&] {
      for (Number i = 0; !done.load(); i = (i + 1) % kStay) {
        const auto found = map->get(i);
        ASSERT_TRUE(found.has_value()) << i;
        ASSERT_EQ(*found, i * 3);
      }
    });
    readers.emplace_back([&] {
      while (!done.load()) {
        std::map<Number, unsigned> shown;
        map->for_each([&](Number key, Number value) {
          if (key < kStay) {
            EXPECT_EQ(value, key * 3);
            ++shown[key];
          }
          return true;
        });
        ASSERT_EQ(shown.size(), kStay);
        for (const auto& [key, times] : shown) ASSERT_EQ(times, 1u) << key;
      }
    });
    {
      std::vector<std::jthread> writers;
      for (unsigned t = 0; t < 2; ++t) {
        writers.emplace_back([&, t] {
          for (Number i = 0; i < kCome; ++i) {
            map->insert_ahead(kStay + i * 2 + t, i);
            map->insert_ahead(i % kStay, i + 7);
          }
        });
      }
    }
    done = true;
  }
  EXPECT_EQ(map->size(), kStay + 2 * kCome);
  map.expect_sound_pool();
}

/// An erase reaches duplicates of the key in every layer, also while they are on their way: a key
/// that its only thread has erased is gone.
TEST(ElimDaStress, AnEraseReachesEveryDuplicate) {
  constexpr Number kRounds = 3000;
  TestMap<Number, Number> map;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (Number i = 0; i < kRounds; ++i) {
          const Number key = (i % 5) * kThreads + t;
          for (Number copy = 0; copy < 3 + i % 7; ++copy) map->insert_ahead(key, i * 10 + copy);
          ASSERT_EQ(map->get(key), std::optional<Number>(i * 10));
          ASSERT_TRUE(map->update(key, i));
          ASSERT_EQ(map->get(key), std::optional<Number>(i));
          ASSERT_TRUE(map->erase(key));
          ASSERT_FALSE(map->contains(key));
          ASSERT_FALSE(map->erase(key));
        }
      });
    }
  }
  EXPECT_EQ(map->size(), 0u);
  map.expect_sound_pool();
  EXPECT_EQ(map->size(), 0u);
}

/// All calls meet the moments when the index gets more logs: keys that are there are found with the
/// values that they have, erased ones are gone, one of several inserts wins, and for_each shows
/// what stays once. An index begins with few logs, so there are many small ones.
TEST(ElimDaStress, AllCallsMeetMoreLogs) {
  constexpr Number kRounds = 40, kStay = 24, kShared = 400, kOwn = 300;
  for (Number round = 0; round < kRounds && !testing::Test::HasFatalFailure(); ++round) {
    TestMap<Number, Number> map(kGrowing);
    for (Number i = 0; i < kStay; ++i) map->insert(i, i);
    std::array<std::atomic<unsigned>, kShared> winners{};
    std::atomic<unsigned> writing{kThreads};
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (Number i = 0; i < kShared; ++i) {
            if (map->insert(1000 + i, t)) winners[i].fetch_add(1);
            if (i >= kOwn) continue;
            const Number key = 10'000 + i * kThreads + t;
            map->insert_ahead(key, i);
            map->insert_ahead(i % kStay, i + 7);
            ASSERT_TRUE(map->update(key, i + 1));
            ASSERT_EQ(map->get(key), std::optional<Number>(i + 1));
            if (i % 3 == 0) {
              ASSERT_TRUE(map->erase(key));
              ASSERT_FALSE(map->contains(key));
            }
          }
          writing.fetch_sub(1);
        });
      }
      threads.emplace_back([&] {
        do {
          std::map<Number, unsigned> shown;
          map->for_each([&](Number key, Number value) {
            if (key < kStay) {
              EXPECT_EQ(value, key);
              ++shown[key];
            }
            return true;
          });
          ASSERT_EQ(shown.size(), kStay);
          for (const auto& [key, times] : shown) ASSERT_EQ(times, 1u) << key;
          for (Number i = 0; i < kStay; ++i) ASSERT_EQ(map->get(i), std::optional<Number>(i));
        } while (writing.load() > 0);
      });
    }
    EXPECT_GE(TestAccess::log_set(*map).count(), 64u);
    for (Number i = 0; i < kShared; ++i) EXPECT_EQ(winners[i].load(), 1u) << i;
    EXPECT_EQ(map->size(), kStay + kShared + kThreads * (kOwn - kOwn / 3));
    map.expect_sound_pool();
  }
}

/// Concurrent readers and writers make a segment warm.
TEST(ElimDaStress, SeveralThreadsMakeItWarm) {
  constexpr Number kKeys = 3000;
  TestMap<Number, Number> map;
  for (Number i = 0; i < kKeys; ++i) map->insert_ahead(i, i + 1);
  for (unsigned round = 0; round < 10; ++round) {
    map.reopen_index();
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (Number i = t; i < kKeys; i += 1 + t % 2) {
          ASSERT_EQ(map->get(i), std::optional<Number>(i + 1));
          map->insert_ahead(i, 0);
        }
      });
    }
  }
  EXPECT_EQ(map->size(), kKeys);
  map.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::detail::index::elimda
