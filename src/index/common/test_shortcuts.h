// Cases of a cached path (path_cache.h), for each engine that has one: operations by it beside a
// model, its return after a restart, a budget that is too small.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/types.h>

#include "index/common/test_options.h"
#include "index/common/test_stress.h"
#include "util/random.h"

namespace perdix::detail::index {

inline constexpr BufferOptions kCached{.dram_budget = kUnlimited, .technique = Technique::boc};
inline constexpr BufferOptions kCachedLazily{
    .dram_budget = kUnlimited, .technique = Technique::boc, .resume_in_background = false};
inline constexpr BufferOptions kCachedInLittle{.dram_budget = 20'000, .technique = Technique::boc};

/// `Make::index<K>(options)` is an index of an engine in a new pool, with values that are numbers.
template <class Make>
class Shortcut : public ::testing::Test {
 protected:
  using Number = std::uint64_t;

  /// Phases that grow and that shrink, and a restart after each few.
  template <class K>
  static void mixed_operations(const BufferOptions& options) {
    constexpr Number kKeys = 600;
    auto index = Make::template index<K>(options);
    util::Random random(5);
    std::map<K, Number> model;
    for (unsigned round = 0; round < 24; ++round) {
      for (unsigned i = 0; i < 150; ++i) {
        const K key = as_key(random.below(kKeys), K{});
        if (random.below(5) == 0 ? round % 6 >= 3 : round % 6 < 3) {
          ASSERT_EQ((*index)->insert(key, i), model.emplace(key, i).second);
        } else {
          ASSERT_EQ((*index)->erase(key), model.erase(key) > 0);
        }
        const K other = as_key(random.below(kKeys), K{});
        const auto known = model.find(other);
        ASSERT_EQ((*index)->get(other),
                  known == model.end() ? std::nullopt : std::optional(known->second));
      }
      expect_same(*index, model);
      index->expect_sound();
      if (round % 5 == 4) index->reopen_index(options);
    }
    index->expect_sound_pool();
  }

  static void both_kinds(const BufferOptions& options) {
    mixed_operations<Number>(options);
    mixed_operations<std::string>(options);
  }

  /// The shortcut may be there at one opening and not at the next.
  static void technique_of_each_opening() {
    auto index = Make::template index<Number>(kCached);
    std::map<Number, Number> model;
    util::Random random(7);
    for (unsigned round = 0; round < 12; ++round) {
      index->reopen_index(round % 3 == 0   ? BufferOptions{}
                          : round % 3 == 1 ? kCached
                                           : kCachedLazily);
      for (unsigned i = 0; i < 300; ++i) {
        const Number key = random.below(2000);
        if (random.one_in(3)) {
          EXPECT_EQ((*index)->erase(key), model.erase(key) > 0);
        } else {
          (*index)->put(key, i);
          model[key] = i;
        }
      }
      expect_same(*index, model);
      index->expect_sound_pool();
    }
  }

  static void many_lookups_at_once() {
    auto index = Make::template index<Number>(kCached);
    for (Number key = 0; key < 3000; key += 2) (*index)->put(key, key + 1);
    for (const BufferOptions& options : {kCached, kCachedLazily, kCachedInLittle}) {
      index->reopen_index(options);
      for (Number first = 0; first < 3000; first += 50) {
        std::vector<Number> keys;
        for (Number key = first; key < first + 50; ++key) keys.push_back(key);
        std::vector<std::optional<Number>> found(keys.size());
        (*index)->get_many(keys, found);
        for (std::size_t i = 0; i < keys.size(); ++i)
          EXPECT_EQ(found[i], keys[i] % 2 == 0 ? std::optional(keys[i] + 1) : std::nullopt);
      }
    }
  }

  /// Keys that lie side by side in others' prefixes, and the least and the greatest.
  static void keys_at_the_ends() {
    auto index = Make::template index<std::string>(kCached);
    std::map<std::string, Number> model;
    for (const std::string& key :
         {std::string(), std::string(1, '\0'), std::string(3, '\0'), std::string(200, 'a'),
          std::string(201, 'a'), std::string(9, '\xff')})
      model[key] = key.size();
    for (Number i = 0; i < 500; ++i) model[std::string(100, 'a') + std::to_string(i)] = i;
    for (const auto& [key, value] : model) (*index)->put(key, value);
    expect_same(*index, model);
    for (const auto& [key, value] : model) EXPECT_EQ((*index)->get(key), value);
    EXPECT_EQ((*index)->find_below(std::string()), std::nullopt);
    index->expect_sound_pool();
  }
};

TYPED_TEST_SUITE_P(Shortcut);
TYPED_TEST_P(Shortcut, AnswersAsAModel) { this->both_kinds(kCached); }
TYPED_TEST_P(Shortcut, ComesBackAsItIsUsed) { this->both_kinds(kCachedLazily); }
TYPED_TEST_P(Shortcut, WithoutRoom) { this->both_kinds(kCachedInLittle); }
TYPED_TEST_P(Shortcut, TechniqueOfEachOpening) { this->technique_of_each_opening(); }
TYPED_TEST_P(Shortcut, ManyLookupsAtOnce) { this->many_lookups_at_once(); }
TYPED_TEST_P(Shortcut, KeysAtTheEnds) { this->keys_at_the_ends(); }
REGISTER_TYPED_TEST_SUITE_P(Shortcut, AnswersAsAModel, ComesBackAsItIsUsed, WithoutRoom,
                            TechniqueOfEachOpening, ManyLookupsAtOnce, KeysAtTheEnds);

}  // namespace perdix::detail::index
