// The forms that the tree is measured in: each is a right tree, alone and with several threads, and
// those that count conflicts count none of one thread and some of two.
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "nbtree_forms/test_form.h"
#include "util/random.h"
#include "util/test_eventually.h"

namespace perdix::nbtree_forms {
namespace {

using Number = std::uint64_t;
namespace util = detail::util;

struct FormName {
  template <class Form>
  static std::string GetName(int) {
    if (std::is_same_v<Form, Coupled>) return "MetadataInPm";
    if (std::is_same_v<Form, AllLocks>) return "AllLocks";
    if (std::is_same_v<Form, WriteLocks>) return "WriteLocks";
    return std::is_same_v<Form, Counted> ? "Counted" : "LockFree";
  }
};

/// Some changes of random keys, which the model gets, too. The answers are compared.
template <class Form>
void change(TestForm<Form>& tree, std::map<Number, Number>& model, Number seed) {
  constexpr Number kChanges = 30'000, kKeys = 4000;
  util::Random random(seed);
  for (Number i = 0; i < kChanges; ++i) {
    const Number key = random.below(kKeys);
    switch (random.below(4)) {
      case 0: ASSERT_EQ(tree->insert(key, i), model.emplace(key, i).second) << key; break;
      case 1: {
        const auto found = model.find(key);
        ASSERT_EQ(tree->update(key, i), found != model.end()) << key;
        if (found != model.end()) found->second = i;
        break;
      }
      case 2: ASSERT_EQ(tree->erase(key), model.erase(key) > 0) << key; break;
      default: {
        const auto found = model.find(key);
        const auto wanted = found == model.end() ? std::nullopt : std::optional(found->second);
        ASSERT_EQ(tree->get(key), wanted) << key;
      }
    }
  }
}

template <class Form>
void expect_model(TestForm<Form>& tree, const std::map<Number, Number>& model) {
  for (const auto& [key, value] : model) ASSERT_EQ(tree->get(key), value) << key;
  EXPECT_EQ(tree->size(), model.size());
  tree.expect_sound_pool();
}

template <class Form>
class NbTreeVariant : public testing::Test {};

using Forms = ::testing::Types<Plain, Counted, WriteLocks, AllLocks, Coupled>;
TYPED_TEST_SUITE(NbTreeVariant, Forms, FormName);

TYPED_TEST(NbTreeVariant, BehavesLikeAMap) {
  TestForm<TypeParam> tree;
  std::map<Number, Number> model;
  change(tree, model, 1);
  expect_model(tree, model);
}

TYPED_TEST(NbTreeVariant, KeepsAllPairsAcrossReopening) {
  TestForm<TypeParam> tree;
  std::map<Number, Number> model;
  Number seed = 1;
  for (const bool cold : {false, true}) {
    change(tree, model, seed++);
    tree.reopen(cold);
    change(tree, model, seed++);
    expect_model(tree, model);
  }
}

/// All threads insert the same keys and erase them again: each insert that returns true has one
/// erase.
TYPED_TEST(NbTreeVariant, OneOfSeveralInsertsWins) {
  constexpr Number kRounds = 20'000, kShared = 8, kThreads = 4;
  TestForm<TypeParam> tree;
  std::array<std::atomic<std::int64_t>, kShared> there{};
  {
    std::vector<std::jthread> threads;
    for (Number t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        for (Number i = 0; i < kRounds; ++i) {
          const Number key = random.below(kShared);
          if (random.one_in(2)) {
            if (tree->insert(key, i)) there[key].fetch_add(1);
          } else if (random.one_in(2)) {
            if (tree->erase(key)) there[key].fetch_sub(1);
          } else {
            tree->update(key, i);
            tree->get(key);
          }
        }
      });
    }
  }
  for (Number key = 0; key < kShared; ++key)
    EXPECT_EQ(there[key].load(), tree->contains(key) ? 1 : 0) << key;
  tree.expect_sound_pool();
}

/// Each thread fills and empties a range that all share, so that leaves are split and joined below
/// the others.
TYPED_TEST(NbTreeVariant, ThreadsSplitAndMergeLeaves) {
  constexpr Number kKeys = 6 * engines::nbtree::kCapacity, kRounds = 10, kThreads = 4;
  TestForm<TypeParam> tree;
  {
    std::vector<std::jthread> threads;
    for (Number t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (Number round = 0; round < kRounds; ++round) {
          for (Number i = 0; i < kKeys; ++i) tree->put(i, i);
          for (Number i = 0; i < kKeys; ++i) {
            if (const auto found = tree->get(i)) {
              EXPECT_EQ(*found, i);
            }
          }
          for (Number i = 0; i < kKeys; ++i) tree->erase(i);
        }
      });
    }
  }
  EXPECT_EQ(tree->size(), 0u);
  tree.expect_sound_pool();
}

/// A key of each thread is not lost while others insert into the same leaves.
TYPED_TEST(NbTreeVariant, ThreadsReadTheirOwnInserts) {
  constexpr Number kKeys = 5000, kThreads = 4;
  TestForm<TypeParam> tree;
  {
    std::vector<std::jthread> threads;
    for (Number t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (Number i = 0; i < kKeys; ++i) {
          const Number key = i * kThreads + t;
          EXPECT_TRUE(tree->insert(key, i));
          EXPECT_EQ(tree->get(key), i);
        }
      });
    }
  }
  EXPECT_EQ(tree->size(), kKeys * kThreads);
  tree.expect_sound_pool();
}

template <class Form>
class NbTreeConflicts : public testing::Test {};

using CountingForms = ::testing::Types<Counted, WriteLocks, AllLocks>;
TYPED_TEST_SUITE(NbTreeConflicts, CountingForms, FormName);

TYPED_TEST(NbTreeConflicts, OneThreadCausesNone) {
  TestForm<TypeParam> tree;
  std::map<Number, Number> model;
  change(tree, model, 1);
  EXPECT_EQ(tree->conflicts(), 0u);
}

TYPED_TEST(NbTreeConflicts, ThreadsThatUpdateOneKeyCauseSome) {
  TestForm<TypeParam> tree;
  tree->put(1, 1);
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 2; ++t) {
      // Each value is another one: a value that comes back is no conflict.
      threads.emplace_back([&, t] {
        for (Number i = t; !stop; i += 2) tree->update(1, i);
      });
    }
    util::eventually("one thread has met the other", [&] { return tree->conflicts() > 0; });
    stop = true;
  }
  EXPECT_GT(tree->conflicts(), 0u);
  tree.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::nbtree_forms
