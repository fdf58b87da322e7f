// Scans of an engine that keeps the orders of its leaves, between changes and beside them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_stress.h"
#include "util/random.h"

namespace perdix::detail::index {

template <class K>
K scan_key(std::uint64_t number) {
  return as_key(number, K{});
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

/// Threads change their keys, while others scan: every other key never changes, and each scan must
/// show it; the values of the others say to which key they belong.
template <class K, class Tree>
void scan_beside_writers(Tree& tree, unsigned steps) {
  constexpr std::uint64_t kKeys = 1200;
  constexpr unsigned kWriters = 2, kReaders = 2;
  std::map<K, std::uint64_t> steady, changing;
  for (std::uint64_t i = 0; i < kKeys; ++i) (i % 2 == 0 ? steady : changing)[scan_key<K>(i)] = i;
  for (const auto& [key, number] : steady) tree->put(key, number);
  std::atomic<unsigned> writing{kWriters};
  const auto write = [&](unsigned thread) {
    util::Random random(thread + 1);
    for (unsigned step = 0; step < steps; ++step) {
      const std::uint64_t number = (random.below(kKeys / 2 / kWriters) * kWriters + thread) * 2 + 1;
      const K key = scan_key<K>(number);
      if (!random.one_in(2) || !tree->erase(key)) tree->put(key, number + kKeys * step);
    }
    writing.fetch_sub(1);
  };
  const auto read = [&](unsigned thread) {
    util::Random random(100 + thread);
    for (bool more = true; more && !::testing::Test::HasFailure();) {
      more = writing.load() > 0;
      const K from = scan_key<K>(random.below(kKeys));
      auto expected = steady.lower_bound(from);
      std::optional<K> last;
      std::size_t left = 1 + random.below(300);
      tree->scan(from, [&](View<K> key, std::uint64_t value) {
        EXPECT_TRUE(!(K(key) < from) && (!last || *last < K(key))) << key << " is out of order";
        EXPECT_EQ(K(key), scan_key<K>(value % kKeys)) << "the value is another key's";
        last = K(key);
        while (expected != steady.end() && expected->first < *last) {
          ADD_FAILURE() << expected->first << " was passed over";
          ++expected;
        }
        if (expected != steady.end() && expected->first == *last) ++expected;
        return --left > 0;
      });
      EXPECT_TRUE(left == 0 || expected == steady.end()) << "the scan ends early";
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < kWriters; ++t) threads.emplace_back(write, t);
  for (unsigned t = 0; t < kReaders; ++t) threads.emplace_back(read, t);
}

}  // namespace perdix::detail::index
