// Threads that use one index concurrently and know what must be in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "util/random.h"

namespace perdix::detail::index {

inline constexpr unsigned kStressThreads = 4;
inline constexpr std::uint64_t kStressKeys = 300;  // of each thread
inline constexpr unsigned kStressSteps = 30000;

inline std::uint64_t as_key(std::uint64_t number, std::uint64_t) { return number; }
inline std::string as_key(std::uint64_t number, std::string_view) {
  return number == 0 ? "" : std::to_string(number % 7) + "prefix" + std::to_string(number);
}

/// Each thread has its own keys, interleaved with the others', and knows what it has written.
template <class TestTree, class K>
class StressRun {
 public:
  template <class... Arguments>
  explicit StressRun(const Arguments&... arguments)
      : tree_(arguments...), models_(kStressThreads) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < kStressThreads; ++t) threads.emplace_back([this, t] { write(t); });
      threads.emplace_back([this] { read(); });
      for (unsigned t = 0; t < kStressThreads; ++t) threads[t].join();
      done_ = true;
    }
    std::map<K, std::uint64_t> expected;
    for (const auto& model : models_) expected.insert(model.begin(), model.end());
    expect(expected);
    tree_.expect_sound_pool();
    expect(expected);
  }

 private:
  static constexpr bool kOrdered = !requires { TestTree::kUnordered; };

  void expect(const std::map<K, std::uint64_t>& expected) {
    if constexpr (kOrdered) {
      expect_same(tree_, expected);
    } else {
      expect_pairs(tree_, expected);
    }
  }

  K key_of(unsigned thread, std::uint64_t i) const {
    return as_key(i * kStressThreads + thread, K{});
  }

  /// Grows and shrinks in turn, so that merges reach all levels.
  void write(unsigned thread) {
    util::Random random(thread + 1);
    auto& model = models_[thread];
    for (unsigned step = 0; step < kStressSteps; ++step) {
      const K key = key_of(thread, random.below(kStressKeys));
      const bool grow = step / 2000 % 2 == 0;
      ASSERT_EQ(tree_->get(key), known(model, key));
      if (random.below(8) == 0 ? !grow : grow) {
        add(key, step, model, random.below(4));
      } else {
        ASSERT_EQ(tree_->erase(key), model.erase(key) > 0);
      }
      ASSERT_EQ(tree_->get(key), known(model, key));
    }
  }

  static std::optional<std::uint64_t> known(const std::map<K, std::uint64_t>& model, const K& key) {
    const auto pair = model.find(key);
    return pair == model.end() ? std::nullopt : std::optional(pair->second);
  }

  void add(const K& key, std::uint64_t value, std::map<K, std::uint64_t>& model, std::uint64_t by) {
    constexpr bool kAhead = requires { TestTree::kInsertsAhead; };
    if (by == 0) {
      EXPECT_EQ(tree_->insert(key, value), model.emplace(key, value).second);
    } else if (by == 1 && model.contains(key)) {
      EXPECT_TRUE(tree_->update(key, value));
      model[key] = value;
    } else if constexpr (kAhead) {
      by == 2 ? tree_->put(key, value) : tree_->insert_ahead(key, value);
      by == 2 ? model.insert_or_assign(key, value) : model.emplace(key, value);
    } else {
      tree_->put(key, value);
      model[key] = value;
    }
  }

  void read() {
    util::Random random(99);
    while (!done_) {
      const K from = key_of(0, random.below(kStressKeys));
      show(from);
      tree_->size();
    }
  }

  void show(const K& from) {
    std::optional<K> last;
    const auto ascends = [&](auto key, auto) {
      EXPECT_TRUE(!(K(key) < from) && (!last || *last < K(key))) << "keys ascend";
      last = K(key);
      return true;
    };
    if constexpr (kOrdered) {
      tree_->scan(from, ascends);
      if constexpr (requires { tree_->find_floor(from); }) {
        const auto floor = tree_->find_floor(from);
        EXPECT_FALSE(floor && from < floor->first);
      }
    } else {
      tree_.core().reclaim_space();
      std::set<K> shown;
      tree_->for_each([&](auto key, auto) {
        EXPECT_TRUE(shown.insert(K(key)).second) << "shown twice";
        return true;
      });
      (void)tree_->stats();
    }
  }

  TestTree tree_;
  std::vector<std::map<K, std::uint64_t>> models_;
  std::atomic<bool> done_{false};
};

/// All threads insert the same keys and erase them again: each insert that returns true has one
/// erase.
template <class TestIndex>
void one_of_several_inserts_wins(TestIndex& index, const std::vector<std::uint64_t>& keys) {
  constexpr std::uint64_t kRounds = 20000;
  std::vector<std::atomic<std::int64_t>> there(keys.size());
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kStressThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          const std::uint64_t key = random.below(keys.size());
          if (random.one_in(2)) {
            if (index->insert(keys[key], i)) there[key].fetch_add(1);
          } else if (index->erase(keys[key])) {
            there[key].fetch_sub(1);
          }
        }
      });
    }
  }
  for (std::size_t key = 0; key < keys.size(); ++key)
    EXPECT_EQ(there[key].load(), index->contains(keys[key]) ? 1 : 0) << keys[key];
  index.expect_sound_pool();
}

inline const std::vector<std::uint64_t> kEightKeys = {0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace perdix::detail::index
