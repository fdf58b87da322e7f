// Many threads in trees with small nodes, so that splits, merges and new roots meet on all levels:
// each has its own keys, between those of the others, and knows what it has written.
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_scans.h"
#include "index/fastfair/test_tree.h"
#include "util/random.h"

namespace perdix::detail::index::fastfair {
namespace {

constexpr unsigned kFanout = 4;

template <class K>
class StressRun {
 public:
  explicit StressRun(unsigned fanout = kFanout, const FastFairOptions& options = {})
      : tree_(fanout, options), models_(kThreads) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { write(t); });
      threads.emplace_back([this] { read(); });
      for (unsigned t = 0; t < kThreads; ++t) threads[t].join();
      done_ = true;
    }
    Model all;
    for (const Model& model : models_) all.insert(model.begin(), model.end());
    expect_same(tree_, all);
    tree_.expect_sound_pool();
    expect_same(tree_, all);
  }

 private:
  using Model = std::map<K, Number>;
  static constexpr unsigned kThreads = 4, kSteps = 30000;
  static constexpr Number kKeys = 300;  // of each thread

  static K key_of(unsigned thread, Number i) { return scan_key<K>(i * kThreads + thread); }

  /// Grows and shrinks in turn, so that merges reach all levels.
  void write(unsigned thread) {
    util::Random random(thread + 1);
    Model& model = models_[thread];
    for (unsigned step = 0; step < kSteps; ++step) {
      const K key = key_of(thread, random.below(kKeys));
      const bool grow = step / 2000 % 2 == 0;
      ASSERT_EQ(tree_->get(key), known(model, key));
      if (random.one_in(8) == grow) {
        ASSERT_EQ(tree_->erase(key), model.erase(key) > 0);
      } else if (random.one_in(4)) {
        ASSERT_EQ(tree_->insert(key, step), model.emplace(key, step).second);
      } else if (model.contains(key) && random.one_in(3)) {
        ASSERT_TRUE(tree_->update(key, step));
        model[key] = step;
      } else {
        tree_->put(key, step);
        model[key] = step;
      }
      ASSERT_EQ(tree_->get(key), known(model, key));
    }
  }

  static std::optional<Number> known(const Model& model, const K& key) {
    const auto pair = model.find(key);
    return pair == model.end() ? std::nullopt : std::optional(pair->second);
  }

  void read() {
    util::Random random(99);
    while (!done_) {
      const K from = key_of(0, random.below(kKeys));
      std::optional<K> last;
      tree_->scan(from, [&](auto key, auto) {
        EXPECT_TRUE(!(K(key) < from) && (!last || *last < K(key))) << "keys ascend";
        last = K(key);
        return true;
      });
      const auto floor = tree_->find_floor(from);
      EXPECT_FALSE(floor && from < floor->first);
      tree_->size();
    }
  }

  TestTree<K, Number> tree_;
  std::vector<Model> models_;
  std::atomic<bool> done_{false};
};

void run_both_kinds(const FastFairOptions& options = {}) {
  StressRun<Number>(kFanout, options).run();
  StressRun<std::string>(options.technique == Technique::none ? kFanout : 2 * kFanout, options)
      .run();
}

TEST(FastFairStress, WithoutBuffers) { run_both_kinds(); }

/// Buffers for some leaves, which change hands.
TEST(FastFairStress, MergesInPlace) {
  run_both_kinds({.dram_budget = 12'000, .technique = Technique::b});
}
TEST(FastFairStress, MergesOutOfPlace) {
  run_both_kinds({.dram_budget = 12'000, .technique = Technique::bo});
}
TEST(FastFairStress, ByTheCachedPath) {
  run_both_kinds({.dram_budget = kUnlimited, .technique = Technique::boc});
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
