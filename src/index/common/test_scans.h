// Scans of an engine that keeps the orders of its leaves, between changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "util/random.h"

namespace perdix::detail::index {

template <class K>
K scan_key(std::uint64_t number) {
  if constexpr (std::is_same_v<K, std::string>)
    return number == 0 ? "" : std::to_string(number % 7) + "prefix" + std::to_string(number);
  else
    return number;
}

/// What a scan shows from a key on, at most `limit` pairs, is what the model has.
template <class Tree, class K>
void expect_scan(Tree& tree, const std::map<K, std::uint64_t>& model, const K& from,
                 std::size_t limit) {
  auto expected = model.lower_bound(from);
  std::size_t shown = 0;
  tree->scan(from, [&](View<K> key, std::uint64_t value) {
    if (expected == model.end() || K(key) != expected->first || value != expected->second) {
      ADD_FAILURE() << "pair " << shown << " from " << from << " is " << key << ", " << value;
      return false;
    }
    ++expected;
    return ++shown < limit;
  });
  EXPECT_TRUE(shown == limit || expected == model.end()) << "a scan from " << from << " ends early";
}

/// Changes random keys out of a fixed number of them, and scans after every few changes. Grows and
/// shrinks in turn, so that leaves are split and merged, and slots are filled again.
template <class K, class Tree>
void change_and_scan(Tree& tree, std::map<K, std::uint64_t>& model, std::uint64_t keys,
                     unsigned steps, std::uint64_t seed) {
  util::Random random(seed);
  for (unsigned step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
    const K key = scan_key<K>(random.below(keys));
    const bool grow = step / 4000 % 2 == 0;
    if (random.below(5) == 0 ? !grow : grow) {
      tree->put(key, step);
      model[key] = step;
    } else {
      EXPECT_EQ(tree->erase(key), model.erase(key) > 0);
    }
    if (!random.one_in(3)) continue;
    expect_scan(tree, model, scan_key<K>(random.below(keys)), 1 + random.below(200));
  }
  expect_scan(tree, model, K{}, model.size() + 1);
}

}  // namespace perdix::detail::index
