// Write buffers of the skip list: merges into the list, owners that are erased and stay, what a
// change of the technique, a restart and a full pool leave. What the calls do is tested by
// tests/conformance, for all engines alike.
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "index/skiplist/test_list.h"
#include "util/random.h"

namespace perdix::detail::index::skiplist {
namespace {

constexpr SkipListOptions kBuffered{.dram_budget = kUnlimited, .technique = Technique::b};
constexpr unsigned kPairs = BufferShape::kPairs;

/// The key of a tall node that all of `count` keys behind it have in their range, and these.
std::vector<Number> tall_node_range(unsigned count) {
  const util::SeededHash hash(kTestSeed);
  for (Number first = 1;; ++first) {
    std::vector<Number> keys = {first};
    if (height_of_hash(hash(first)) < kTall) continue;
    while (keys.size() <= count && height_of_hash(hash(keys.back() + 1)) < kTall)
      keys.push_back(keys.back() + 1);
    if (keys.size() > count) return keys;
  }
}

/// A list with a tall node, and a few pairs in its buffer.
class SkipListOwner : public testing::Test {
 protected:
  static constexpr unsigned kBehind = 6;

  SkipListOwner() : list_(SkipListOptions{}), keys_(tall_node_range(kBehind)) {
    for (const Number key : keys_of_height(2, 3, keys_.back() + 1000)) put(key);
    put(keys_[0]);
    EXPECT_TRUE(list_.is_in(keys_[0], kTall - 1));
    list_.reopen_index(kBuffered);
    for (unsigned i = 1; i <= kBehind; ++i) put(keys_[i]);
    EXPECT_EQ(list_->stats().leaves, 4U);  // the others are in the buffer
  }

  void put(Number key) { list_->put(key, key), model_[key] = key; }
  void erase(Number key) {
    EXPECT_TRUE(list_->erase(key));
    EXPECT_FALSE(list_->erase(key));
    model_.erase(key);
  }
  void look() {
    expect_same(list_, model_);
    for (Number key = keys_[0] - 1; key <= keys_.back() + 1; ++key) {
      EXPECT_EQ(list_->contains(key), model_.contains(key));
      const auto above = model_.upper_bound(key);
      const auto floor = list_->find_floor(key);
      ASSERT_EQ(floor.has_value(), above != model_.begin()) << key;
      if (floor) {
        EXPECT_EQ(floor->first, std::prev(above)->first);
      }
    }
    list_.expect_sound();
  }

  Numbers list_;
  std::vector<Number> keys_;
  std::map<Number, Number> model_;
};

TEST_F(SkipListOwner, StaysForItsBufferWhenErased) {
  erase(keys_[0]);
  ASSERT_TRUE(is_hollow(list_.node_of(keys_[0])));
  look();
  ASSERT_TRUE(is_hollow(list_.node_of(keys_[0])));
  EXPECT_FALSE(list_->update(keys_[0], 1));
  list_.reopen();
  look();
  EXPECT_TRUE(list_.is_in(keys_[0], 0));
  for (unsigned i = 1; i <= kBehind; ++i) erase(keys_[i]);
  EXPECT_FALSE(list_.is_in(keys_[0], 0)) << "nothing keeps it";
  look();
}

TEST_F(SkipListOwner, ComesBackWhenErasedAndInserted) {
  erase(keys_[0]);
  ASSERT_TRUE(list_->insert(keys_[0], 1));
  model_[keys_[0]] = 1;
  EXPECT_GT(list_->stats().leaves, 4U) << "what the buffer had is merged";
  look();
}

TEST_F(SkipListOwner, WithoutAChainGoesAtOnce) {
  for (unsigned i = 1; i <= kBehind; ++i) erase(keys_[i]);
  erase(keys_[0]);
  EXPECT_FALSE(list_.is_in(keys_[0], 0));
  look();
}

/// A crash may come after the END of its chain, with the node on any of its levels.
TEST(SkipListBuffers, AHollowNodeThatACrashHasKept) {
  const std::vector<Number> keys = tall_node_range(4);
  for (unsigned levels = 1; levels <= kTall; ++levels) {
    for (const unsigned first : {0U, 1U}) {
      Numbers list(kBuffered);
      list.reopen_index(SkipListOptions{});  // there is a log, and all pairs come into the list
      std::map<Number, Number> model;
      const auto put = [&](Number key) { list->put(key, key), model[key] = key; };
      for (const Number key : keys_of_height(2, 3, keys.back() + 1000)) put(key);
      for (const Number key : keys) put(key);
      Node& node = list.node_of(keys[0]);
      ASSERT_GE(height_of(node), kTall);
      list.leave_levels(keys[0], levels);
      node.meta = Meta{.hollow = true, .height = height_of(node)}.pack();
      model.erase(keys[0]);
      list.reopen_index(kBuffered);
      const auto look = [&] {
        expect_same(list, model);
        EXPECT_EQ(list->find_floor(keys[0]), std::nullopt);
        EXPECT_EQ(list->find_floor(keys[1])->first, keys[1]);
        list.expect_sound();
      };
      look();
      EXPECT_FALSE(list->erase(keys[0]));
      EXPECT_FALSE(list->update(keys[0], 1));
      put(keys.back() + 1);
      look();
      put(keys[first]);  // its own key makes it go
      expect_same(list, model);
      list.expect_sound_pool();
    }
  }
}

TEST(SkipListBuffers, SixteenPairsWaitInOne) {
  Numbers list(kBuffered);
  for (Number key = 0; key < kPairs; ++key) list->put(key, key);
  EXPECT_EQ(list->stats().leaves, 0U);
  EXPECT_EQ(list->size(), kPairs);
  list->put(1000, 1);
  EXPECT_EQ(list->stats().leaves, kPairs);
  list.expect_sound_pool();
}

/// As without buffers: heights follow from the keys.
TEST(SkipListBuffers, TallNodesComeIntoTheirLevels) {
  for (const Technique technique : {Technique::b, Technique::bo, Technique::boc}) {
    Numbers list({.dram_budget = kUnlimited, .technique = technique});
    util::Random random(1);
    for (Number i = 0; i < 20'000; ++i) list->put(random(), i);
    const auto tall = static_cast<double>(list.nodes(kTall - 1).size());
    EXPECT_NEAR(tall, static_cast<double>(list->stats().leaves) / 16, tall / 5);
    for (const Node* node : list.nodes(kTall - 1)) EXPECT_GE(height_of(*node), kTall);
    list.expect_sound_pool();
  }
}

/// Buffers for a few ranges only, which must change hands.
TEST(SkipListBuffers, TakesBuffersFromIdleRanges) {
  Numbers list({.dram_budget = 3000, .technique = Technique::b});
  std::map<Number, Number> model;
  for (Number part = 0; part < 40; ++part) {
    for (Number i = 0; i < 300; ++i) {
      const Number key = part * 1000 + i * 7 % 1000;
      list->put(key, i), model[key] = i;
    }
  }
  expect_same(list, model);
  list.expect_sound_pool();
}

TEST(SkipListBuffers, AnEmptiedListKeepsNoNodes) {
  Numbers list(kBuffered);
  for (Number key = 0; key < 3000; ++key) list->put(key, key);
  for (Number key = 0; key < 3000; ++key) ASSERT_TRUE(list->erase(key * 7 % 3000)) << key;
  EXPECT_EQ(list->size(), 0U);
  EXPECT_TRUE(list.nodes().empty());
  list.expect_sound_pool();
}

/// An erase needs no space, also of a node whose buffer can't be merged.
TEST(SkipListBuffers, AFullPoolCanBeEmptied) {
  TestList<Number, std::string> list(kBuffered);
  std::vector<Number> keys;
  util::Random random(2);
  for (std::size_t bytes = std::size_t{1} << 18; bytes > 0; bytes /= 8) {
    const std::string value(bytes, 'v');
    const auto fill = [&] {
      for (;;) {
        const Number key = random.below(1 << 20);
        if (list->insert(key, value)) keys.push_back(key);
      }
    };
    EXPECT_THROW(fill(), Error);
    list.expect_sound();
  }
  EXPECT_EQ(list->size(), keys.size());
  for (const Number key : keys) ASSERT_TRUE(list->erase(key));
  EXPECT_EQ(list->size(), 0U);
  EXPECT_TRUE(list.nodes().empty());
  list.expect_sound_pool();
}

/// The space ends in the middle of merges, whose first runs are in the list then.
TEST(SkipListBuffers, AMergeMayFindSpaceForSomeOfItsPairs) {
  TestList<Number, std::string> list(kBuffered);
  std::map<Number, std::string> model;
  util::Random random(3);
  // An empty string needs no block, so that it is a node that is refused in the end.
  for (const std::size_t bytes : {1 << 18, 1 << 15, 1 << 12, 1 << 9, 1 << 6, 0}) {
    const std::string value(bytes, 'v');
    for (unsigned refused = 0; refused < (bytes == 0 ? 40 : 3); ++refused) {
      // Neighbours, so that buffers become full.
      try {
        for (Number key = random.below(Number{1} << 30);; ++key) {
          list->put(key, value);
          model[key] = value;
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Errc::out_of_space);
      }
      for (unsigned i = 0; i < 20; ++i) {
        const auto any = model.lower_bound(random.below(Number{1} << 30));
        if (any == model.end()) continue;
        ASSERT_TRUE(list->erase(any->first));
        model.erase(any);
      }
      list.expect_sound();
    }
  }
  list.expect_sound();
  EXPECT_EQ(list->size(), model.size());
  for (const auto& [key, value] : model) ASSERT_TRUE(list->erase(key)) << key;
  EXPECT_TRUE(list.nodes().empty());
  list.expect_sound_pool();
}

TEST(SkipListBuffers, ADropFreesBlocksOfTheLog) {
  for (const unsigned pairs : {5U, 40U, 300U}) {
    TestList<std::string, std::string> list(kBuffered);
    for (Number i = 0; i < pairs; ++i)
      list->put(datum<std::string>(i + 1), datum<std::string>(i + 2));
    list.drop();
    list.expect_sound_pool();
    EXPECT_EQ(list->size(), 0U);
  }
}

}  // namespace
}  // namespace perdix::detail::index::skiplist
