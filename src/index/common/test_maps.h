// Maps without order, of a few keys, beside a std::map that any call changes as it does them.
#pragma once

#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "util/random.h"

namespace perdix::detail::index {

/// Makes one call of any kind that the map has; where it has insert_ahead, that is every other.
template <class K, class V, class TestMap>
void make_any_call(TestMap& map, std::map<K, V>& model, const K& key, const V& value,
                   util::Random& random) {
  const auto known = model.find(key);
  const bool there = known != model.end(), same = there && known->second == value;
  const V other = datum<V>(random.below(50));
  std::uint64_t call = random.below(8);
  if constexpr (requires { TestMap::kInsertsAhead; }) {
    if (call >= 4) return map->insert_ahead(key, value), void(model.emplace(key, value));
  } else {
    if (call == 6 && there) {
      ASSERT_EQ(map->update_if(key, value, other), same);
      if (same) known->second = other;
      return;
    }
    if (call == 7) {
      ASSERT_EQ(map->erase_if(key, value), same);
      if (same) model.erase(known);
      return;
    }
  }
  if (call == 0) {
    ASSERT_EQ(map->erase(key), there);
    model.erase(key);
  } else if (call == 1) {
    ASSERT_EQ(map->update(key, value), there);
    if (there) known->second = value;
  } else if (call == 2) {
    ASSERT_EQ(map->insert(key, value), !there);
    model.emplace(key, value);
  } else {
    map->put(key, value);
    model.insert_or_assign(key, value);
  }
}

/// `keys(step)`: how many keys there are to choose from. `now_and_then()` may open the map again.
template <class K, class V, class TestMap, class Keys, class NowAndThen>
void behaves_like_a_map(TestMap& map, util::Random& random, Keys keys, NowAndThen now_and_then) {
  std::map<K, V> model;
  for (unsigned step = 0; step < 6000; ++step) {
    const K key = datum<K>(random.below(keys(step)));
    const V value = datum<V>(random.below(50));
    ASSERT_NO_FATAL_FAILURE(make_any_call(map, model, key, value, random)) << step;
    const auto got = map->get(key);
    ASSERT_EQ(got.has_value(), model.contains(key)) << step;
    ASSERT_EQ(map->contains(key), model.contains(key)) << step;
    if (got) {
      ASSERT_EQ(*got, model[key]) << step;
    }
    if (random.below(400) != 0) continue;
    expect_pairs(map, model);
    now_and_then();
    expect_pairs(map, model);
  }
  expect_pairs(map, model);
  map.expect_sound_pool();
  expect_pairs(map, model);
}

/// First few keys, so that they come and go, then many.
inline Number few_then_many(unsigned step) { return step < 3000 ? 40 : 600; }

}  // namespace perdix::detail::index
