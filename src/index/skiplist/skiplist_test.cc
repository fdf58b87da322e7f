// What the skip list does with its nodes: memory, and damaged pools. The behaviour of the calls is
// tested by tests/conformance, for all engines alike.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/skiplist/test_list.h"
#include "util/random.h"

namespace perdix::detail::index::skiplist {
namespace {

using Number = std::uint64_t;

TEST(SkipListPairs, ErasedNodesAreFreed) {
  util::Random random(3);
  Strings list;
  const Number before = list.allocated();
  std::vector<Number> keys(2000);
  for (unsigned order = 0; order < 3; ++order) {
    std::iota(keys.begin(), keys.end(), 0);
    for (const Number key : keys) list->put(text_of(key), "value");
    EXPECT_GT(list.allocated(), before);
    if (order == 1) std::reverse(keys.begin(), keys.end());
    if (order == 2) std::shuffle(keys.begin(), keys.end(), random);
    for (const Number key : keys) EXPECT_TRUE(list->erase(text_of(key)));
    EXPECT_EQ(list->size(), 0u);
    EXPECT_EQ(levels_in_use(list.head()), 0u) << "order " << order;
    list.expect_sound_pool();
  }
}

/// Three of four nodes have half a line, the others one, and few of these more.
TEST(SkipListPairs, APairTakesFortyBytesOnAverage) {
  Numbers list;
  constexpr Number kPairs = 50000;
  for (Number i = 0; i < kPairs; ++i) list->put(i * 7919, i);
  const IndexStats stats = list->stats();
  EXPECT_EQ(stats.pairs, kPairs);
  EXPECT_NEAR(static_cast<double>(stats.pm_bytes) / kPairs, 40, 1);
  list.expect_sound();
}

/// The memory of the node where a scan would go on has another key, when it does.
TEST(SkipListPairs, AVisitorMayPutOtherPairsInTheirPlace) {
  Numbers list;
  constexpr Number kPairs = 500, kMore = 100000;
  for (Number i = 0; i < kPairs; ++i) list->put(i, i);
  Number shown = 0;
  list->scan(0, [&](Number key, Number) {
    if (key == 10) {
      for (Number i = 0; i < kPairs; ++i) list->erase(i);
      list.core().reclaim_space();
      for (Number i = 0; i < 10 * kPairs; ++i) list->put(kMore + i, i);
      for (Number i = 70; i < 90; ++i) list->put(i, i);
    }
    if (key >= 70 && key < 90) ++shown;
    return true;
  });
  EXPECT_EQ(shown, 20u);
}

// --- Damage: what lies in a pool is not trusted ---

template <class List>
void expect_corrupt(List& list, Number key) {
  try {
    (void)list->get(key);
    ADD_FAILURE() << "nothing is noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
  }
}

class SkipListDamage : public ::testing::Test {
 protected:
  SkipListDamage() {
    for (Number i = 0; i < 50; ++i) list_->put(i, i);
    last_ = list_.nodes().back();
    former_ = *last_;
  }
  ~SkipListDamage() override { *last_ = former_; }

  Numbers list_;
  Node* last_ = nullptr;

 private:
  Node former_;
};

TEST_F(SkipListDamage, ALinkLeadsOutOfThePool) {
  last_->first = Link{std::uint64_t{1} << 47}.pack();
  expect_corrupt(list_, 100);
  EXPECT_FALSE(list_->check().ok());
}

TEST_F(SkipListDamage, ALinkLeadsBetweenNodes) {
  last_->first = Link{list_.core().offset(last_) + 16}.pack();
  expect_corrupt(list_, 100);
}

TEST_F(SkipListDamage, ALinkLeadsToTheHead) {
  last_->first = Link{list_.core().offset(&list_.head())}.pack();
  expect_corrupt(list_, 100);
}

TEST_F(SkipListDamage, LinksLeadRoundInACircle) {
  last_->first = Link{list_.core().offset(list_.nodes().front())}.pack();
  expect_corrupt(list_, 100);
  EXPECT_THROW(list_->scan(0, [](Number, Number) { return true; }), Error);
  EXPECT_FALSE(list_->check().ok());
}

TEST_F(SkipListDamage, GetManyGoesRoundInNoCircle) {
  last_->first = Link{list_.core().offset(list_.nodes().front())}.pack();
  const std::vector<Number> keys = {100};
  std::vector<std::optional<Number>> values(1);
  EXPECT_THROW(list_->get_many(keys, values), Error);
}

TEST_F(SkipListDamage, ANodeIsHigherThanItsBlock) {
  last_->meta = Meta{.height = kMaxHeight + 1}.pack();
  expect_corrupt(list_, 100);
}

TEST_F(SkipListDamage, ANodeHasNoMark) {
  last_->meta = 1;
  expect_corrupt(list_, 100);
}

TEST_F(SkipListDamage, ANodeIsMarkedAsErased) {
  last_->first |= 1;
  list_.expect_problem("is marked as erased (L5)");
  // No call waits without end until it is gone.
  expect_corrupt(list_, 49);
  expect_corrupt(list_, 100);
  EXPECT_THROW(list_->put(49, 1), Error);
  EXPECT_THROW(list_->put(100, 1), Error);
  EXPECT_THROW(list_->erase(49), Error);
  EXPECT_THROW(list_->erase(100), Error);
  EXPECT_THROW((void)list_->find_floor(100), Error);
  EXPECT_THROW(list_->scan(100, [](Number, Number) { return true; }), Error);
}

/// Calls that read throw an Error or answer something, whatever a node has in it; and they end.
TEST(SkipListRandomDamage, ReadsMeetErrorsOnly) {
  constexpr Number kKeys = 60;
  util::Random random(9);
  Strings list;
  for (Number i = 0; i < kKeys; ++i) list->put(text_of(i), text_of(i));
  ASSERT_EQ(list->size(), kKeys);  // which is kept
  unsigned errors = 0;
  const auto attempt = [&](auto call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt) << error.what();
      ++errors;
    }
  };
  const std::vector<Node*> nodes = list.nodes();
  for (unsigned round = 0; round < 2000; ++round) {
    Node& node = *nodes[random.below(nodes.size())];
    std::uint64_t* const words = &node.meta;
    std::uint64_t& word = words[random.below(3 + height_of(node))];
    const std::uint64_t former = word;
    const Node& other = *nodes[random.below(nodes.size())];
    word = random.one_in(2) ? former ^ std::uint64_t{1} << random.below(64)
                            : list.core().offset(&other);
    for (Number i = 0; i < kKeys; i += 7) {
      attempt([&] { (void)list->get(text_of(i)); });
      attempt([&] { (void)list->find_floor(text_of(i)); });
    }
    attempt([&] { list->scan("", [](std::string_view, std::string_view) { return true; }); });
    attempt([&] { list->for_each_block([](pm::Offset) {}); });
    attempt([&] { (void)list->stats(); });
    (void)list->check();
    word = former;
  }
  EXPECT_GT(errors, 2000u);
  list.expect_sound_pool();
}

/// Calls that write throw a corrupt Error or succeed, whatever a link of a node is; and they end.
TEST(SkipListRandomDamage, WritesMeetErrorsOnly) {
  constexpr Number kKeys = 40;
  util::Random random(10);
  for (unsigned round = 0; round < 60; ++round) {
    Numbers list;
    for (Number i = 0; i < kKeys; ++i) list->put(i, i);
    const std::vector<Node*> nodes = list.nodes();
    Node& node = *nodes[random.below(nodes.size())];
    std::uint64_t& word = link_word(node, static_cast<unsigned>(random.below(height_of(node))));
    word = random.one_in(2) ? word ^ std::uint64_t{1} << random.below(48)
                            : list.core().offset(nodes[random.below(nodes.size())]);
    for (Number i = 0; i < 4 * kKeys; ++i) {
      try {
        const Number key = random.below(2 * kKeys);
        if (random.one_in(2)) {
          list->put(key, i);
        } else {
          list->erase(key);
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::corrupt) << error.what();
      }
    }
    (void)list->check();
  }
}

TEST(SkipListStringDamage, AStringIsNotThere) {
  Strings list;
  for (Number i = 0; i < 20; ++i) list->put(text_of(i), text_of(i));
  Node& node = *list.nodes()[10];
  const Node former = node;
  node.value = std::uint64_t{1} << 40;
  list.expect_problem("refers to a string that is not there (L6)");
  node = former;
  node.key ^= std::uint64_t{1} << 60;
  list.expect_problem("has another one's tag");
  node = former;
  list.expect_sound();
}

}  // namespace
}  // namespace perdix::detail::index::skiplist
