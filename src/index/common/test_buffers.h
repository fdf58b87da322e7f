// Tests of indexes with write buffers: all kinds of keys and values, and an index beside a map,
// whose technique and budget change with every opening.
#pragma once

#include <array>
#include <iterator>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "index/common/test_options.h"
#include "index/common/test_pool.h"
#include "util/random.h"

namespace perdix::detail::index {

/// Any technique, and no buffers, some, or one for each leaf or tall node.
inline BufferOptions any_options(util::Random& random) {
  BufferOptions options;
  options.technique = static_cast<Technique>(random.below(4));
  options.dram_budget = std::array<Number, 3>{0, 3000, kUnlimited}[random.below(3)];
  options.resume_in_background = random.one_in(2);
  return options;
}

/// An index of a test (TestPool) beside a map, which any call changes as it does the map.
template <class TestIndex, class K, class V>
class Beside {
 public:
  /// `arguments`: what the index is made with, before its options.
  template <class... Arguments>
  explicit Beside(Number seed, Arguments... arguments)
      : random_(seed), index_(arguments..., any_options(random_)) {}

  void run(unsigned rounds) {
    for (unsigned round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      const bool grows = round % 4 < 2;
      for (unsigned i = 0; i < 150 && !testing::Test::HasFailure(); ++i) step(grows);
      look();
      if (random_.one_in(3)) reopen();
    }
    index_.expect_sound_pool();
    index_.drop();
    index_.expect_sound_pool();
  }

 private:
  void step(bool grows) {
    const K key = datum<K>(random_.below(400));
    const V value = datum<V>(random_.below(50));
    switch (random_.below(8)) {
      case 0: index_->put(key, value), model_[key] = value; break;
      case 1: EXPECT_EQ(index_->update(key, value), change(key, value)); break;
      case 2: EXPECT_EQ(index_->erase(key), model_.erase(key) > 0); break;
      default:
        if (grows) {
          EXPECT_EQ(index_->insert(key, value), model_.emplace(key, value).second);
        } else {
          EXPECT_EQ(index_->erase(key), model_.erase(key) > 0);
        }
    }
  }

  bool change(const K& key, const V& value) {
    const auto known = model_.find(key);
    if (known != model_.end()) known->second = value;
    return known != model_.end();
  }

  void look() {
    expect_same(index_, model_);
    for (Number i = 0; i < 400; ++i) {
      const K key = datum<K>(i);
      const auto known = model_.find(key);
      EXPECT_EQ(index_->get(key),
                known == model_.end() ? std::nullopt : std::optional<V>(known->second));
      const auto above = model_.upper_bound(key);
      const auto floor = index_->find_floor(key);
      ASSERT_EQ(floor.has_value(), above != model_.begin());
      if (floor) {
        EXPECT_EQ(floor->first, std::prev(above)->first);
      }
    }
    index_.expect_sound();
  }

  void reopen() {
    index_.set_options(any_options(random_));
    random_.one_in(2) ? index_.reopen() : index_.reopen_index();
    if (random_.one_in(2)) look();
  }

  util::Random random_;
  TestIndex index_;
  std::map<K, V> model_;
};

}  // namespace perdix::detail::index
