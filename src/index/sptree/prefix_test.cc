// The way to a leaf among keys that share more bytes than a node of the top layer stores.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "index/sptree/test_tree.h"

namespace perdix::detail::index::sptree {
namespace {

using Model = std::map<std::string, std::uint64_t>;

struct Shape {
  unsigned common;       // bytes that all keys share
  std::uint64_t budget;  // for write buffers
};

/// A tree in a new pool. Nothing comes back in the background.
class PrefixTree : public TestPool<PrefixTree> {
 public:
  using Tree = sptree::Tree<std::string, std::uint64_t>;

  explicit PrefixTree(std::uint64_t budget) : budget_(budget) { open(); }

  void open() {
    SpTreeOptions options;
    options.dram_budget = budget_;
    options.resume_in_background = false;
    tree_.emplace(core().open_index("t", kEngineName, Kind::bytes, Kind::u64), options);
  }
  void close() { tree_.reset(); }
  void reopen() {
    reopen_pool();
    open();
  }

  Tree& operator*() { return *tree_; }
  Tree* operator->() { return &*tree_; }

 private:
  std::uint64_t budget_;
  std::optional<Tree> tree_;
};

class PrefixTest : public testing::TestWithParam<Shape> {
 protected:
  /// Most keys are in the shelf 's'; the few in others leave it behind the common bytes, on both
  /// sides, or within them.
  std::string key(char shelf, unsigned number) const {
    return std::string(GetParam().common, 'p') + shelf + fmt::format("{:08}", number);
  }
  std::string key_beside(char other, unsigned number) const {
    std::string key = this->key('s', number);
    key[key.size() / 2] = other;
    return key;
  }

  std::vector<std::string> keys() const {
    const unsigned many = GetParam().common > 1000 ? 3000 : 12'000, step = many / 20;
    std::vector<std::string> keys;
    for (unsigned i = 0; i < many; ++i) keys.push_back(key('s', i));
    for (unsigned i = 0; i < many; i += step) {
      keys.push_back(key('t', i));
      keys.push_back(key('r', i));
      keys.push_back(key_beside('o', i));
      keys.push_back(key_beside('q', i));
    }
    return keys;
  }

  void fill(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      model_[key] = model_.size();
      tree_->put(key, model_[key]);
    }
  }

  std::mt19937_64 random_{5};
  PrefixTree tree_{GetParam().budget};
  Model model_;
};

TEST_P(PrefixTest, LookupsPassNoOtherLeaf) {
  fill(keys());
  for (const auto& [key, value] : model_) {
    ASSERT_EQ(tree_->steps_right(key), 0u) << key;
    ASSERT_EQ(tree_->steps_right(key.substr(0, key.size() - 1)), 0u) << key;
    ASSERT_EQ(tree_->steps_right(key + '~'), 0u) << key;
  }
}

TEST_P(PrefixTest, LeavesComeBackInAnyOrderOnce) {
  fill(keys());
  std::vector<std::string> order = keys();
  for (int round = 0; round < 4; ++round) {
    tree_.reopen();
    std::shuffle(order.begin(), order.end(), random_);
    // A part of the leaves only: the next round meets them with what this one wrote.
    const std::size_t end = round == 3 ? order.size() : 50;
    for (std::size_t i = 0; i < end; ++i) {
      const std::string& key = order[i];
      const auto found = model_.find(key);
      const auto expected =
          found == model_.end() ? std::nullopt : std::optional<std::uint64_t>(found->second);
      ASSERT_EQ(tree_->get(key), expected) << key;
      ASSERT_EQ(tree_->get(key), expected) << key;
      if (i % 5 == 0) tree_->put(key, model_[key] = i);
      if (i % 7 == 0) {
        ASSERT_EQ(tree_->erase(key), model_.erase(key) == 1) << key;
      }
    }
  }
  expect_same(tree_, model_);
  tree_.expect_sound();
  tree_.reopen();
  expect_same(tree_, model_);
  tree_.expect_sound_pool();
}

std::string name_of(const testing::TestParamInfo<Shape>& shape) {
  return fmt::format("{}{}", shape.param.common, shape.param.budget == 0 ? "" : "Buffered");
}

constexpr std::uint64_t kAll = kUnlimited;
INSTANTIATE_TEST_SUITE_P(Bytes, PrefixTest,
                         testing::Values(Shape{8, 0}, Shape{31, 0}, Shape{32, 0}, Shape{33, 0},
                                         Shape{37, kAll}, Shape{64, 0}, Shape{300, kAll},
                                         Shape{4096, 0}, Shape{4096, kAll}),
                         name_of);

}  // namespace
}  // namespace perdix::detail::index::sptree
