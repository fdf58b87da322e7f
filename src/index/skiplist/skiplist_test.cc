// What the skip list does with pairs: the calls beside a model, memory, scans beside changes, and
// damaged pools. The behaviour of the calls is tested by tests/conformance, for all engines alike.
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/common/test_scans.h"
#include "index/skiplist/test_list.h"
#include "util/random.h"

namespace perdix::detail::index::skiplist {
namespace {

using Number = std::uint64_t;

constexpr Number kGreatest = std::numeric_limits<Number>::max();

TEST(SkipListPairs, MixedOperations) {
  util::Random random(2);
  Numbers numbers;
  Strings strings;
  std::map<Number, Number> model;
  std::map<std::string, std::string> text_model;
  for (unsigned round = 0; round < 40; ++round) {
    const bool grow = round % 4 < 2;
    for (unsigned i = 0; i < 100; ++i) {
      const Number key = random.below(600) * 31;
      if (random.below(4) == 0 ? !grow : grow) {
        EXPECT_EQ(numbers->insert(key, i), model.emplace(key, i).second);
        EXPECT_EQ(strings->insert(text_of(key), text_of(i)),
                  text_model.emplace(text_of(key), text_of(i)).second);
      } else {
        EXPECT_EQ(numbers->erase(key), model.erase(key) > 0);
        EXPECT_EQ(strings->erase(text_of(key)), text_model.erase(text_of(key)) > 0);
      }
    }
    if (round % 10 == 9) {
      numbers.reopen();
      strings.reopen();
    }
    expect_same(numbers, model);
    expect_same(strings, text_model);
    numbers.expect_sound();
    strings.expect_sound();
  }
  numbers.expect_sound_pool();
  strings.expect_sound_pool();
  strings.drop();
  EXPECT_EQ(strings->size(), 0u);
  strings.expect_sound_pool();
}

TEST(SkipListPairs, NoKeyAndNoValueIsReserved) {
  Numbers numbers;
  const std::vector<Number> all = {0, 1, 2, kGreatest - 1, kGreatest};
  for (const Number key : all) {
    EXPECT_TRUE(numbers->insert(key, kGreatest - key));
    EXPECT_FALSE(numbers->insert(key, 5));
  }
  numbers.reopen();
  for (const Number key : all) EXPECT_EQ(numbers->get(key), kGreatest - key);
  numbers.expect_sound_pool();
  for (const Number key : all) EXPECT_TRUE(numbers->erase(key));

  Strings strings;
  const std::vector<std::string> texts = {"", std::string(1, '\0'), "a",
                                          std::string(65535, '\xff')};
  for (const std::string& key : texts) {
    strings->put(key, key);
    strings->put(key, "");
    strings->put(key, "");  // nothing to change
    EXPECT_EQ(strings->get(key), "");
  }
  strings.reopen();
  strings.expect_sound_pool();
  for (const std::string& key : texts) EXPECT_TRUE(strings->erase(key));
  EXPECT_EQ(strings->size(), 0u);
  strings.expect_sound_pool();
}

TEST(SkipListPairs, UpdatesGoByTheFormerValue) {
  Strings list;
  EXPECT_FALSE(list->update("key", "value"));
  EXPECT_FALSE(list->update_if("key", "", "value"));
  list->put("key", "one");
  EXPECT_FALSE(list->update_if("key", "two", "three"));
  EXPECT_FALSE(list->erase_if("key", "two"));
  EXPECT_EQ(list->get("key"), "one");
  EXPECT_TRUE(list->update_if("key", "one", "two"));
  EXPECT_TRUE(list->update("key", "three"));
  EXPECT_TRUE(list->erase_if("key", "three"));
  EXPECT_FALSE(list->contains("key"));
  list.expect_sound_pool();
}

TEST(SkipListPairs, FindFloorAndBelow) {
  util::Random random(4);
  Numbers list;
  std::map<Number, Number> model;
  EXPECT_FALSE(list->find_floor(kGreatest));
  EXPECT_FALSE(list->find_below(0));
  const auto expect = [](const auto& found, const auto& end, const auto& model_of) {
    ASSERT_EQ(found.has_value(), end != model_of.begin());
    if (found) {
      ASSERT_EQ(*found, (std::pair<Number, Number>(*std::prev(end))));
    }
  };
  for (unsigned i = 0; i < 3000; ++i) {
    const Number key = random.below(2000);
    if (i % 3 != 0) {
      list->put(key, i);
      model[key] = i;
    } else {
      list->erase(key);
      model.erase(key);
    }
    const Number wanted = random.below(2100);
    expect(list->find_floor(wanted), model.upper_bound(wanted), model);
    expect(list->find_below(wanted), model.lower_bound(wanted), model);
  }
}

TEST(SkipListPairs, GetManyAgreesWithGet) {
  util::Random random(5);
  Strings list;
  std::vector<std::string> texts;
  for (Number i = 0; i < 1000; ++i) {
    texts.push_back(text_of(i));
    if (random.one_in(2)) list->put(texts.back(), text_of(i * 3));
  }
  for (unsigned round = 0; round < 50; ++round) {
    std::vector<std::string_view> keys;
    for (Number i = 0; i <= round; ++i) keys.emplace_back(texts[random.below(texts.size())]);
    std::vector<std::optional<std::string>> values(keys.size());
    list->get_many(keys, values);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], list->get(keys[i]));
  }
}

TEST(SkipListPairs, GetManyOfAnEmptyList) {
  Numbers list;
  const std::vector<Number> keys = {0, 1, kGreatest};
  std::vector<std::optional<Number>> values(keys.size());
  list->get_many(keys, values);
  for (const auto& value : values) EXPECT_FALSE(value);
}

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

TEST(SkipListPairs, ScansGoOnWhereTheyWere) {
  Numbers list;
  std::map<Number, Number> model;
  util::Random random(6);
  change_and_scan<Number>(list, model, 700, 9000, 7);
  list.expect_sound();
  expect_scan(list, model, Number{1}, 64);
  expect_scan(list, model, Number{1}, 65);
}

TEST(SkipListPairs, ScansOfLongStringsGoOnWhereTheyWere) {
  Strings list;
  std::map<std::string, std::string> model;
  for (Number i = 0; i < 300; ++i) {
    const std::string value(1000 + i, 'v');
    list->put(text_of(i), value);
    model[text_of(i)] = value;
  }
  expect_same(list, model);
}

TEST(SkipListPairs, AVisitorMayEraseWhatComesNext) {
  Numbers list;
  constexpr Number kPairs = 1000;
  for (Number i = 0; i < kPairs; ++i) list->put(i, i);
  std::vector<Number> shown;
  list->scan(0, [&](Number key, Number) {
    shown.push_back(key);
    // Those of the next batch, and where the scan would go on.
    if (key % 100 == 50) {
      for (Number i = key + 1; i < key + 50; ++i) list->erase(i);
    }
    return true;
  });
  EXPECT_TRUE(std::is_sorted(shown.begin(), shown.end()));
  EXPECT_EQ(std::adjacent_find(shown.begin(), shown.end()), shown.end());
  for (Number i = 0; i < kPairs; ++i) {
    if (list->contains(i)) {
      EXPECT_TRUE(std::binary_search(shown.begin(), shown.end(), i)) << i;
    }
  }
  list.expect_sound_pool();
}

TEST(SkipListPairs, AVisitorMayEmptyTheList) {
  Numbers list;
  for (Number i = 0; i < 500; ++i) list->put(i, i);
  Number shown = 0;
  list->scan(0, [&](Number, Number) {
    if (shown++ == 10) {
      for (Number i = 0; i < 500; ++i) list->erase(i);
      list.core().reclaim_space();
    }
    return true;
  });
  EXPECT_LE(shown, 64u);
  EXPECT_EQ(list->size(), 0u);
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

TEST(SkipListPairs, SizeIsCountedOnce) {
  Numbers list;
  for (Number i = 0; i < 100; ++i) list->put(i, i);
  list.reopen();
  list->erase(5);
  list->put(1000, 1);
  EXPECT_EQ(list->size(), 100u);
  list->erase(6);
  EXPECT_EQ(list->size(), 99u);
}

TEST(SkipListPairs, AFullPoolLosesNothing) {
  Strings list;
  const std::string value(100000, 'v');
  Number count = 0;
  try {
    for (;; ++count) list->put(text_of(count), value);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_space);
  }
  list.expect_sound();
  EXPECT_EQ(list->size(), count);
  EXPECT_TRUE(list->erase(text_of(0)));
  EXPECT_TRUE(list->insert(text_of(count), value)) << "what was erased makes room";
  list.expect_sound_pool();
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
