// Threads that use one index concurrently and know what must be in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
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
  return std::to_string(number % 7) + "prefix" + std::to_string(number);
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
    expect_same(tree_, expected);
    tree_.expect_sound_pool();
  }

 private:
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
      const auto known = model.find(key);
      ASSERT_EQ(tree_->get(key), known == model.end() ? std::optional<std::uint64_t>{}
                                                      : std::optional(known->second));
      if (random.below(8) == 0 ? !grow : grow) {
        tree_->put(key, step);
        model[key] = step;
      } else {
        ASSERT_EQ(tree_->erase(key), model.erase(key) > 0);
      }
    }
  }

  void read() {
    util::Random random(99);
    while (!done_) {
      const K from = key_of(0, random.below(kStressKeys));
      std::optional<K> last;
      tree_->scan(from, [&](auto key, auto) {
        EXPECT_TRUE(!(K(key) < from) && (!last || *last < K(key))) << "keys ascend";
        last = K(key);
        return true;
      });
      tree_->size();
      if constexpr (requires { tree_->find_floor(from); }) {
        const auto floor = tree_->find_floor(from);
        EXPECT_FALSE(floor && from < floor->first);
      }
    }
  }

  TestTree tree_;
  std::vector<std::map<K, std::uint64_t>> models_;
  std::atomic<bool> done_{false};
};

}  // namespace perdix::detail::index
