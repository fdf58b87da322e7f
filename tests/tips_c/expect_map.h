// Random writes to an index that is plugged into Tips, compared with a map.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>

#include <perdix/index.h>
#include <perdix/pool.h>

namespace perdix::test {

template <class T>
T datum(std::uint64_t number) {
  if constexpr (std::is_same_v<T, std::uint64_t>)
    return number;
  else
    return std::string(number % 50, 'x') + std::to_string(number);
}

/// Random writes to an Index, compared with a map; the pool is opened again now and then.
template <class K, class V, class Open>
void expect_map(const Open& open, bool ordered, std::uint64_t keys = 150) {
  std::mt19937_64 random(7);
  std::map<std::string, std::string> model;
  const auto bytes = [](const auto& datum) -> std::string {
    if constexpr (std::is_same_v<std::decay_t<decltype(datum)>, std::uint64_t>) {
      const auto number = encode_u64(datum);
      return {number.data(), number.size()};
    } else {
      return datum;
    }
  };
  for (int round = 0; round < 5; ++round) {
    auto [pool, index] = open();
    for (int i = 0; i < 2000; ++i) {
      const std::string key = bytes(datum<K>(random() % keys)), value = bytes(datum<V>(random()));
      switch (random() % 4) {
        case 0: EXPECT_EQ(index->erase(key), model.erase(key) == 1); break;
        case 1: EXPECT_EQ(index->insert(key, value), model.emplace(key, value).second); break;
        case 2: {
          const auto found = model.find(key);
          EXPECT_EQ(index->get(key).has_value(), found != model.end());
          break;
        }
        default: index->put(key, value), model[key] = value;
      }
    }
    std::map<std::string, std::string> shown;
    std::string last;
    index->for_each([&](std::string_view key, std::string_view value) {
      EXPECT_TRUE(!ordered || shown.empty() || last.compare(key) < 0);
      last = key;
      return shown.emplace(key, value).second;
    });
    EXPECT_EQ(shown, model);
    EXPECT_EQ(index->size(), model.size());
    for (std::uint64_t i = 0; ordered && i < keys; ++i) {
      const std::string key = bytes(datum<K>(i));
      const auto above = model.lower_bound(key);
      const auto floor = index->floor(key), before = index->before(key);
      EXPECT_EQ(floor.has_value(), above != model.begin() || model.contains(key));
      if (floor) {
        EXPECT_EQ(floor->first, model.contains(key) ? key : std::prev(above)->first);
      }
      EXPECT_EQ(before.has_value(), above != model.begin());
      if (before) {
        EXPECT_EQ(before->first, std::prev(above)->first);
      }
    }
    EXPECT_TRUE(index->check().ok());
    index.reset();
    EXPECT_TRUE(pool.check().ok());
  }
}

}  // namespace perdix::test
