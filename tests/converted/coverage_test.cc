// The converted indexes announce each change that they make, and do without memory.
#include <cstdint>
#include <map>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "converted/khash.h"
#include "converted/red_black_tree.h"
#include "converted/watched.h"

namespace perdix::test {
namespace {

using U64 = std::uint64_t;
using Model = std::map<U64, U64>;
using Khashes = WatchedIndex<examples::Khash, tips::IntegerKeys>;
using Trees = WatchedIndex<examples::RedBlackTree, tips::IntegerKeys>;

/// Finds nothing wrong with any node.
struct AllNodes final : tips::Inspector {
  std::size_t nodes = 0;
  bool node(const void*, std::size_t) override { return ++nodes, true; }
  bool pair(tips::Word, tips::Word) override { return true; }
};

template <class Watched>
void put(Watched& watched, Model& model, U64 key, U64 value) {
  U64 old = 0;
  const auto found = model.find(key);
  ASSERT_EQ(watched.put(key, value, old), found != model.end());
  if (found != model.end()) {
    ASSERT_EQ(old, found->second);
  }
  model[key] = value;
}

template <class Watched>
void erase(Watched& watched, Model& model, U64 key) {
  U64 old_key = 0, old = 0;
  const auto found = model.find(key);
  ASSERT_EQ(watched.erase(key, old_key, old), found != model.end());
  if (found == model.end()) return;
  ASSERT_EQ(std::pair(old_key, old), std::pair(key, found->second));
  model.erase(found);
}

template <class Watched>
void expect_sound(const Watched& watched, const Model& model) {
  EXPECT_TRUE(watched.faults().empty()) << watched.faults().front();
  AllNodes all;
  EXPECT_TRUE(watched.index().inspect(all));
  EXPECT_EQ(watched.index().size(), model.size());
  for (const auto& [key, value] : model) {
    U64 found = 0;
    ASSERT_TRUE(watched.index().find(key, found)) << key;
    ASSERT_EQ(found, value);
  }
}

/// Grows, is churned, shrinks, in keys of which some share a part of Khash.
template <class Watched>
void expect_all_announced() {
  Watched watched;
  Model model;
  std::mt19937_64 random(11);
  constexpr U64 kKeys = 1500;
  const auto step = [&](unsigned erases_in_eight) {
    const U64 key = random() % kKeys;
    if (random() % 8 < erases_in_eight)
      erase(watched, model, key);
    else
      put(watched, model, key, random());
  };
  for (const unsigned erases_in_eight : {0U, 4U, 7U, 2U}) {
    for (int i = 0; i < 1200 && !::testing::Test::HasFatalFailure(); ++i) step(erases_in_eight);
    expect_sound(watched, model);
  }
  for (const auto& [key, value] : Model(model)) erase(watched, model, key);
  expect_sound(watched, model);
}

TEST(ConvertedKhash, AnnouncesAllChanges) { expect_all_announced<Khashes>(); }
TEST(ConvertedRedBlackTree, AnnouncesAllChanges) { expect_all_announced<Trees>(); }

/// Without memory, slots of each table fill up, then puts of new keys fail and change nothing.
TEST(ConvertedKhash, FillsItsSlotsWhereThereIsNoMemory) {
  Khashes watched;
  Model model;
  constexpr U64 kFew = 600, kAll = 3000;
  for (U64 key = 0; key < kFew; ++key) put(watched, model, key, key);
  Watch::current().set_left(0);
  const std::size_t blocks = Watch::current().blocks();
  U64 refused = 0;
  for (U64 key = kFew; key < kAll; ++key) {
    U64 old = 0;
    try {
      ASSERT_FALSE(watched.put(key, key, old));
      model[key] = key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500U);
  EXPECT_GT(model.size(), kFew + 200);
  EXPECT_EQ(Watch::current().blocks(), blocks);
  for (U64 key = 0; key < kFew; ++key) put(watched, model, key, key + 1);  // nothing new
  for (U64 key = 0; key < kFew; key += 2) erase(watched, model, key);
  for (U64 key = 0; key < kFew; key += 2) put(watched, model, key, 7);
  expect_sound(watched, model);
  Watch::current().set_left(Watch::kEnough);
  for (U64 key = kFew; key < kAll; ++key) put(watched, model, key, key);
  expect_sound(watched, model);
}

/// A failing allocation of a rehash gives back those before it.
TEST(ConvertedKhash, LosesNoBlocksToAFailedRehash) {
  for (std::size_t left = 0; left < 4; ++left) {
    Khashes watched;
    Model model;
    for (U64 key = 0; key < 1000; ++key) {
      Watch::current().set_left(left);
      U64 old = 0;
      try {
        ASSERT_FALSE(watched.put(key, key, old));
        model[key] = key;
      } catch (const Error&) {
        Watch::current().set_left(Watch::kEnough);
        put(watched, model, key, key);
      }
    }
    expect_sound(watched, model);
    AllNodes all;
    EXPECT_TRUE(watched.index().inspect(all));
    EXPECT_EQ(Watch::current().blocks(), all.nodes) << left;
  }
}

/// An index that changes its object, the second time without a word.
template <class Memory, class Keys>
class Careless {
 public:
  bool put(tips::Word, tips::Word value, tips::Word&) {
    if (value_ == 0) Memory::add(&value_, sizeof value_);
    value_ = value;
    return false;
  }
  bool erase(tips::Word, tips::Word&, tips::Word&) { return false; }
  void renew_locks() {}

 private:
  tips::Word value_ = 0;
};

TEST(Watched, NoticesAChangeThatWasNotAnnounced) {
  WatchedIndex<Careless, tips::IntegerKeys> watched;
  U64 old = 0;
  watched.put(1, 5, old);
  EXPECT_EQ(watched.faults().size(), 0U);
  watched.put(1, 6, old);
  EXPECT_EQ(watched.faults().size(), 1U);
}

}  // namespace
}  // namespace perdix::test
