// Many threads in few small segments, so that splits and joins meet all calls.
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/cceh/test_map.h"
#include "util/random.h"

namespace perdix::detail::index::cceh {
namespace {

using Number = std::uint64_t;

constexpr unsigned kThreads = 4;

template <class K>
K key_of(Number number) {
  if constexpr (std::is_same_v<K, std::string>)
    return number == 0 ? std::string() : "key" + std::to_string(number);
  else
    return number;
}

/// Each thread has its own keys, interleaved with the others', and knows what it has written. One
/// thread removes empty segments, and counts and shows the pairs.
template <class K>
void run_stress() {
  constexpr Number kKeys = 300, kSteps = 20000;
  TestMap<K, Number> map;
  std::array<std::map<K, Number>, kThreads> models;
  std::atomic<unsigned> at_work{kThreads};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        auto& model = models[t];
        for (Number step = 0; step < kSteps; ++step) {
          const K key = key_of<K>(random.below(kKeys) * kThreads + t);
          const bool there = model.contains(key), grow = step / 2000 % 2 == 0;
          if (random.below(8) == 0 ? grow : !grow) {
            EXPECT_EQ(map->erase(key), there);
            model.erase(key);
          } else if (random.one_in(2)) {
            map->put(key, step);
            model[key] = step;
          } else {
            EXPECT_EQ(map->insert(key, step), !there);
            model.emplace(key, step);
          }
          const auto known = model.find(key);
          const auto found = map->get(key);
          EXPECT_EQ(found.has_value(), known != model.end());
          if (found && known != model.end()) {
            EXPECT_EQ(*found, known->second);
          }
        }
        at_work.fetch_sub(1);
      });
    }
    threads.emplace_back([&] {
      while (at_work.load() != 0) {
        map.core().reclaim_space();
        std::map<K, Number> shown;
        map->for_each([&](auto key, Number value) {
          EXPECT_TRUE(shown.emplace(key, value).second) << "shown twice";
          return true;
        });
        (void)map->size();
        (void)map->stats();
      }
    });
  }
  std::map<K, Number> expected;
  for (const auto& model : models) expected.insert(model.begin(), model.end());
  expect_pairs(map, expected);
  map.expect_sound_pool();
  expect_pairs(map, expected);
}

TEST(CcehStress, Numbers) { run_stress<Number>(); }
TEST(CcehStress, Strings) { run_stress<std::string>(); }

/// All threads insert the same keys and erase them again: each insert that returns true has one
/// erase.
TEST(CcehStress, OneOfSeveralInsertsWins) {
  constexpr Number kRounds = 20000, kShared = 8;
  TestMap<Number, Number> map;
  std::array<std::atomic<std::int64_t>, kShared> there{};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        for (Number i = 0; i < kRounds; ++i) {
          const Number key = random.below(kShared);
          if (random.one_in(2)) {
            if (map->insert(key, i)) there[key].fetch_add(1);
          } else if (map->erase(key)) {
            there[key].fetch_sub(1);
          }
        }
      });
    }
  }
  for (Number key = 0; key < kShared; ++key)
    EXPECT_EQ(there[key].load(), map->contains(key) ? 1 : 0) << key;
  map.expect_sound_pool();
}

/// Two keys that take turns in one slot. To compare the first takes so long that the other has come
/// in its place before its value is read.
TEST(CcehStress, ALookupReturnsTheValueOfItsKey) {
  constexpr Number kLookups = 20000, kFirst = 1, kSecond = 2;
  TestMap<std::string, Number> map;
  const auto bucket = [&](std::string_view key) {
    return map.hash_of(key).buckets_of(kSmall.buckets)[0];  // an empty segment's pairs take it
  };
  const std::string first(kMaxKeySize, 'k');
  std::string second = "a";
  while (bucket(second) != bucket(first)) second += 'a';
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    while (!done.load(std::memory_order_relaxed)) {
      EXPECT_TRUE(map->insert(first, kFirst));
      EXPECT_TRUE(map->erase(first));
      EXPECT_TRUE(map->insert(second, kSecond));
      EXPECT_TRUE(map->erase(second));
    }
  });
  for (Number i = 0; i < kLookups; ++i) EXPECT_EQ(map->get(first).value_or(kFirst), kFirst);
  done.store(true);
}

}  // namespace
}  // namespace perdix::detail::index::cceh
