// The cached path: operations by it beside a model, its return after a restart, a budget that is
// too small, and damage.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "index/common/test_crew.h"
#include "index/fastfair/test_tree.h"
#include "util/random.h"

namespace perdix::detail::index::fastfair {
namespace {

using Number = std::uint64_t;

constexpr IndexOptions kCached{.dram_budget = IndexOptions::kUnlimited,
                               .technique = Technique::boc};
constexpr IndexOptions kLazy{.dram_budget = IndexOptions::kUnlimited,
                             .technique = Technique::boc,
                             .resume_in_background = false};
constexpr IndexOptions kSmall{.dram_budget = 4000, .technique = Technique::boc};

/// Phases that grow and that shrink, and a restart after each few.
template <class Test, class K>
void mixed_operations(Test& index, const IndexOptions& options) {
  constexpr unsigned kKeys = 600;
  util::Random random(5);
  std::map<K, Number> model;
  for (unsigned round = 0; round < 24; ++round) {
    for (unsigned i = 0; i < 150; ++i) {
      const K key = as_key(random.below(kKeys), K{});
      if (random.below(5) == 0 ? round % 6 >= 3 : round % 6 < 3) {
        ASSERT_EQ(index->insert(key, i), model.emplace(key, i).second);
      } else {
        ASSERT_EQ(index->erase(key), model.erase(key) > 0);
      }
      const K other = as_key(random.below(kKeys), K{});
      const auto known = model.find(other);
      ASSERT_EQ(index->get(other),
                known == model.end() ? std::nullopt : std::optional(known->second));
    }
    expect_same(index, model);
    index.expect_sound();
    if (round % 5 == 4) index.reopen_index(options);
  }
  index.expect_sound_pool();
}

template <class K>
void with_options(const IndexOptions& options) {
  TestTree<K, Number> index(4, options);
  mixed_operations<decltype(index), K>(index, options);
}

TEST(FastFairShortcut, Numbers) { with_options<Number>(kCached); }
TEST(FastFairShortcut, Strings) { with_options<std::string>(kCached); }
TEST(FastFairShortcut, ComesBackAsItIsUsed) {
  with_options<Number>(kLazy);
  with_options<std::string>(kLazy);
}
TEST(FastFairShortcut, WithoutRoom) {
  with_options<Number>(kSmall);
  with_options<std::string>(kSmall);
}

/// It may be there at one opening and not at the next.
TEST(FastFairShortcut, TechniqueOfEachOpening) {
  TestTree<Number, Number> index(4, kCached);
  std::map<Number, Number> model;
  util::Random random(7);
  for (unsigned round = 0; round < 12; ++round) {
    index.reopen_index(round % 3 == 0 ? IndexOptions{} : round % 3 == 1 ? kCached : kLazy);
    for (unsigned i = 0; i < 300; ++i) {
      const Number key = random.below(2000);
      if (random.one_in(3)) {
        EXPECT_EQ(index->erase(key), model.erase(key) > 0);
      } else {
        index->put(key, i);
        model[key] = i;
      }
    }
    expect_same(index, model);
    index.expect_sound_pool();
  }
}

TEST(FastFairShortcut, ManyLookupsAtOnce) {
  TestTree<Number, Number> index(4, kCached);
  for (Number key = 0; key < 3000; key += 2) index->put(key, key + 1);
  for (const IndexOptions& options : {kCached, kLazy, kSmall}) {
    index.reopen_index(options);
    for (Number first = 0; first < 3000; first += 50) {
      std::vector<Number> keys;
      for (Number key = first; key < first + 50; ++key) keys.push_back(key);
      std::vector<std::optional<Number>> found(keys.size());
      index->get_many(keys, found);
      for (std::size_t i = 0; i < keys.size(); ++i)
        EXPECT_EQ(found[i], keys[i] % 2 == 0 ? std::optional(keys[i] + 1) : std::nullopt);
    }
  }
}

/// Keys that lie side by side in others' prefixes, and the least and the greatest.
TEST(FastFairShortcut, KeysAtTheEnds) {
  TestTree<std::string, Number> index(4, kCached);
  std::map<std::string, Number> model;
  for (const std::string& key :
       {std::string(), std::string(1, '\0'), std::string(3, '\0'), std::string(200, 'a'),
        std::string(201, 'a'), std::string(9, '\xff')})
    model[key] = key.size();
  for (Number i = 0; i < 500; ++i) model[std::string(100, 'a') + std::to_string(i)] = i;
  for (const auto& [key, value] : model) index->put(key, value);
  expect_same(index, model);
  for (const auto& [key, value] : model) EXPECT_EQ(index->get(key), value);
  EXPECT_EQ(index->find_below(std::string()), std::nullopt);
  index.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
