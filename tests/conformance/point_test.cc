// Calls for one key: what they return and what they change.
#include <algorithm>
#include <string>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract new_index_is_empty("a_new_index_is_empty", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(30);
  for (const auto& value : index.get_many(keys)) EXPECT_EQ(value, std::nullopt);
  for (const auto& key : keys) {
    EXPECT_FALSE(index.contains(key));
    EXPECT_FALSE(index.get(key).has_value());
    EXPECT_FALSE(index.erase(key));
    EXPECT_FALSE(index.update(key, fixture.small_value()));
  }
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.stats().pairs, 0U);
  EXPECT_TRUE(index.check().ok());
});

const Contract put_adds_and_replaces("put_adds_and_replaces", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(100);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto first = fixture.small_value();
    const auto second = fixture.small_value();
    index.put(keys[i], first);
    EXPECT_EQ(index.get(keys[i]), first) << show(keys[i]);
    EXPECT_EQ(index.size(), i + 1);
    index.put(keys[i], second);
    EXPECT_EQ(index.get(keys[i]), second) << show(keys[i]);
    EXPECT_EQ(index.size(), i + 1) << "replacing " << show(keys[i]) << " adds no key";
  }
});

const Contract insert_keeps_the_first_value("insert_keeps_the_first_value", [](Fixture& fixture) {
  auto index = fixture.open();
  for (const auto& key : fixture.keys(100)) {
    const auto first = fixture.small_value();
    EXPECT_TRUE(index.insert(key, first)) << show(key);
    EXPECT_FALSE(index.insert(key, fixture.small_value())) << show(key);
    EXPECT_FALSE(index.insert(key, first)) << show(key);
    EXPECT_EQ(index.get(key), first) << show(key);
  }
});

// An insert that does not report whether the key was absent; insert() where there is no such call.
const Contract first_wins("insert_ahead_keeps_the_first_value", [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  const auto keys = fixture.keys(40);
  Model model;
  for (std::uint64_t round = 0; round < 12; ++round) {
    for (const auto& key : keys) {
      const Datum value = tagged_value(fixture.value_kind(), 1 + round);
      index->insert_ahead(key, value);
      model.insert(key, value);
      ASSERT_EQ(index->get(key), model.get(key)) << show(key);
    }
    if (round % 4 == 3) fixture.reopen(index);
    ASSERT_EQ("", compare_all(*index, model, keys)) << "round " << round;
  }
});

const Contract get_fills_an_object("get_fills_an_object_of_the_caller", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(200);
  Datum value = fixture.small_value();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Datum before = value;
    EXPECT_FALSE(index.get(keys[i], value)) << show(keys[i]);
    EXPECT_EQ(value, before) << "nothing was found, nothing may change";
    const Datum written = fixture.small_value();  // longer or shorter than what the object holds
    index.put(keys[i], written);
    EXPECT_TRUE(index.get(keys[i], value)) << show(keys[i]);
    EXPECT_EQ(value, written) << show(keys[i]);
  }
});

const Contract get_many_is_many_gets("get_many_is_many_gets", [](Fixture& fixture) {
  auto index = fixture.open();
  auto keys = fixture.keys(3000);
  for (std::size_t i = 0; i < keys.size(); i += 2) index.put(keys[i], fixture.small_value());
  keys.push_back(keys.front());  // comes twice
  // All keys, in batches around the number of lookups that overlap.
  for (const std::size_t most : {1U, 2U, 15U, 16U, 17U, 33U, 300U}) {
    for (std::size_t from = 0; from < keys.size(); from += most) {
      const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(from);
      const std::size_t count = std::min(most, keys.size() - from);
      const std::vector<Datum> wanted(begin, begin + static_cast<std::ptrdiff_t>(count));
      const auto values = index.get_many(wanted);
      ASSERT_EQ(values.size(), count);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(values[i], index.get(wanted[i])) << show(wanted[i]);
    }
  }
  EXPECT_TRUE(index.get_many({}).empty());
});

const Contract update_changes_what_is_there(
    "update_changes_only_what_is_there", [](Fixture& fixture) {
      auto index = fixture.open();
      for (const auto& key : fixture.keys(100)) {
        EXPECT_FALSE(index.update(key, fixture.small_value())) << show(key);
        EXPECT_FALSE(index.contains(key)) << "an update added " << show(key);
        index.put(key, fixture.small_value());
        const auto value = fixture.small_value();
        EXPECT_TRUE(index.update(key, value)) << show(key);
        EXPECT_TRUE(index.update(key, value)) << "the same value once more: " << show(key);
        EXPECT_EQ(index.get(key), value) << show(key);
      }
    });

const Contract erase_removes_once("erase_removes_once", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(100);
  Model model;
  fill(fixture, index, model, keys);
  for (const auto& key : keys) {
    EXPECT_TRUE(index.erase(key)) << show(key);
    EXPECT_FALSE(index.contains(key)) << show(key);
    EXPECT_FALSE(index.get(key).has_value()) << show(key);
    EXPECT_FALSE(index.erase(key)) << show(key);
    EXPECT_FALSE(index.update(key, fixture.small_value())) << show(key);
    model.erase(key);
    EXPECT_EQ(index.size(), model.size());
  }
  EXPECT_EQ("", compare_all(index, model, keys));
});

const Contract erased_keys_start_anew("a_key_comes_back_with_its_new_value", [](Fixture& fixture) {
  auto index = fixture.open();
  for (const auto& key : fixture.keys(60)) {
    for (int round = 0; round < 3; ++round) {
      const auto value = fixture.small_value();
      EXPECT_TRUE(index.insert(key, value)) << show(key);
      EXPECT_EQ(index.get(key), value) << show(key);
      EXPECT_TRUE(index.erase(key)) << show(key);
      EXPECT_FALSE(index.get(key).has_value()) << show(key);
    }
  }
  EXPECT_EQ(index.size(), 0U);
});

// Each edge key alone, so that none leans on another.
const Contract edge_keys_alone("each_edge_key_alone", [](Fixture& fixture) {
  const auto edges = edge_keys(fixture.key_kind());
  for (const Datum& key : edges) {
    Model model;
    {
      auto index = fixture.open();
      const auto value = fixture.small_value();
      EXPECT_TRUE(index.insert(key, value)) << show(key);
      model.put(key, value);
      EXPECT_EQ("", compare_all(index, model, edges)) << "only " << show(key);
    }
    {
      auto index = fixture.open();
      EXPECT_EQ("", compare_all(index, model, edges)) << "only " << show(key) << ", opened again";
      EXPECT_TRUE(index.erase(key)) << show(key);
      model.erase(key);
      EXPECT_EQ("", compare_all(index, model, edges)) << "without " << show(key);
    }
  }
});

const Contract neighbours_are_left_alone("an_operation_leaves_all_other_keys_alone",
                                         [](Fixture& fixture) {
                                           auto index = fixture.open();
                                           const auto keys = fixture.keys(150);
                                           Model model;
                                           fill(fixture, index, model, keys);
                                           for (const auto& key : edge_keys(fixture.key_kind())) {
                                             index.erase(key);
                                             model.erase(key);
                                             ASSERT_EQ("", compare_all(index, model, keys))
                                                 << "after erase of " << show(key);
                                             const auto value = fixture.small_value();
                                             index.put(key, value);
                                             model.put(key, value);
                                             ASSERT_EQ("", compare_all(index, model, keys))
                                                 << "after put of " << show(key);
                                           }
                                         });

std::vector<Datum> edge_values(Kind kind) {
  if (kind == Kind::u64) {
    const std::uint64_t last = ~std::uint64_t{0};
    const std::uint64_t half = std::uint64_t{1} << 63;
    return {0,        1,   std::uint64_t{1} << 48, half / 2, half - 1, half, half + 1, ~half,
            last - 1, last};
  }
  std::vector<Datum> values;
  for (const std::size_t size :
       {0, 1, 7, 8, 9, 15, 16, 17, 255, 256, 4095, 4096, 65535, 65536, 65537, 1 << 20, 3 << 20}) {
    values.push_back(bytes_of(size, size));
  }
  values.push_back(std::string(8, '\0'));
  values.push_back(std::string(100, '\xff'));
  return values;
}

const Contract every_value_comes_back("every_value_comes_back", [](Fixture& fixture) {
  const auto values = edge_values(fixture.value_kind());
  auto keys = fixture.keys(60);
  keys.resize(values.size());
  Model model;
  std::optional<AnyIndex> index(fixture.open());
  for (std::size_t i = 0; i < values.size(); ++i) {
    index->put(keys[i], values[i]);
    model.put(keys[i], values[i]);
  }
  EXPECT_EQ("", compare_all(*index, model, keys));
  fixture.reopen(index);
  EXPECT_EQ("", compare_all(*index, model, keys)) << "after reopening";
});

// One key whose value takes every size after every other: blocks are taken and given back.
const Contract values_grow_and_shrink("values_grow_and_shrink", [](Fixture& fixture) {
  const auto values = edge_values(fixture.value_kind());
  const auto keys = fixture.keys(40);
  Model model;
  std::optional<AnyIndex> index(fixture.open());
  fill(fixture, *index, model, keys);
  const std::size_t rounds = fixture.count(60);
  for (std::size_t i = 0; i < rounds; ++i) {
    const auto& key = keys[fixture.rng().below(3)];
    const auto& value = values[fixture.rng().below(values.size())];
    EXPECT_TRUE(index->update(key, value)) << show(key);
    model.update(key, value);
    EXPECT_EQ(index->get(key), value) << show(key);
    if (fixture.rng().once_in(15)) fixture.reopen(index);
  }
  EXPECT_EQ("", compare_all(*index, model, keys));
});

// The caller's buffers are the caller's: they may change as soon as a call returns.
const Contract arguments_are_copied("arguments_are_copied", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(40);
  for (const auto& key : keys) {
    auto passed_key = key;
    auto value = fixture.small_value();
    const auto copy = value;
    index.put(passed_key, value);
    passed_key = fixture.least_key();
    value = Datum::least(fixture.value_kind());
    EXPECT_EQ(index.get(key), copy) << show(key);
  }
});

}  // namespace
}  // namespace perdix::test
