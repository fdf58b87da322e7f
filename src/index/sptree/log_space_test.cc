// What SpTree does with the space of its log: full pools, budgets that change, few keys, and an
// index that is emptied. Nothing here depends on time.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/papers/fastfair.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "index/sptree/leaf_at.h"
#include "index/sptree/test_tree.h"
#include "pool/pool_core.h"
#include "util/random.h"
#include "util/test_directory.h"
#include "wal/log.h"

namespace perdix {
namespace {

using detail::index::sptree::kEngineName;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

template <class T>
T number_or_text(std::uint64_t number) {
  if constexpr (std::is_same_v<T, std::string>) {
    return fmt::format("{:016x}{}", number, std::string(number % 40, 'x'));
  } else {
    return number;
  }
}

SpTreeOptions log_options(std::uint64_t dram_budget, bool in_background = true) {
  SpTreeOptions options;
  options.dram_budget = dram_budget;
  options.resume_in_background = in_background;
  return options;
}

class LogSpaceTest : public testing::Test {
 protected:
  Pool& create(std::uint64_t max_size = std::uint64_t{1} << 40) {
    options_.max_size = max_size;
    pool_ = std::make_unique<Pool>(Pool::create(path_, options_));
    return *pool_;
  }

  /// The index "t", with buffers for all leaves unless another budget is given.
  template <class K, class V>
  detail::index::sptree::Tree<K, V> open(std::uint64_t budget = kUnlimited) {
    return detail::index::sptree::Tree<K, V>(
        pool_->core()->open_index("t", kEngineName, kKindOf<K>, kKindOf<V>), log_options(budget));
  }

  Pool& reopen() {
    pool_->close();
    *pool_ = Pool::open(path_, options_);
    return *pool_;
  }

  /// The state of the log of the closed index "t" of numbers, as a restart finds it.
  template <class Ask>
  std::uint64_t ask_log(Ask ask) {
    const auto handle = pool_->core()->open_index("t", kEngineName, Kind::u64, Kind::u64);
    const detail::index::sptree::Root& root =
        detail::index::sptree::root_at(*pool_->core(), handle.root());
    return ask(detail::wal::Log(*pool_->core(), root.log, detail::wal::Log::Limits{0}));
  }

  /// Whether the closed index "t" has a log.
  template <class K, class V>
  bool has_log() {
    const auto handle = pool_->core()->open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    return detail::index::sptree::root_at(*pool_->core(), handle.root()).log != detail::pm::kNull;
  }

  testing_files::TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("test.pool");
  PoolOptions options_;
  std::unique_ptr<Pool> pool_;
};

template <class Tree>
void expect_no_problems(const Tree& tree) {
  for (const std::string& problem : tree.check().problems) ADD_FAILURE() << problem;
}

template <class K, class V>
using Engine = detail::index::sptree::Tree<K, V>;

/// Puts pairs with random keys until the pool is full; how many.
template <class K, class V>
std::uint64_t fill(Engine<K, V>& tree) {
  detail::util::Random random(5);
  for (std::uint64_t i = 0;; ++i) {
    try {
      tree.put(number_or_text<K>(random()), number_or_text<V>(i));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
      return i;
    }
  }
}

template <class Types>
class FullPool : public LogSpaceTest {};

template <class Key, class Value>
struct Kinds {
  using K = Key;
  using V = Value;
};

using AllKinds =
    testing::Types<Kinds<std::uint64_t, std::uint64_t>, Kinds<std::uint64_t, std::string>,
                   Kinds<std::string, std::uint64_t>, Kinds<std::string, std::string>>;
TYPED_TEST_SUITE(FullPool, AllKinds);

// No erasure needs space, not in any order; and others can then get the space that was taken.
TYPED_TEST(FullPool, IsEmptiedByErasures) {
  using K = typename TypeParam::K;
  using V = typename TypeParam::V;
  this->create(16 * kMiB);
  {
    Engine<K, V> tree = this->template open<K, V>();
    const std::uint64_t pairs = fill(tree);
    // Some updates find no room; they change nothing then.
    detail::util::Random random(5);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const auto key = number_or_text<K>(random());
      if (i % 64 != 0) continue;
      bool updated = false;
      try {
        updated = tree.update(key, number_or_text<V>(i + 1));
        EXPECT_TRUE(updated);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::out_of_space);
      }
      ASSERT_EQ(tree.get(key), number_or_text<V>(updated ? i + 1 : i));
    }
    expect_no_problems(tree);
    detail::util::Random same(5);
    for (std::uint64_t i = 0; i < pairs; ++i) ASSERT_TRUE(tree.erase(number_or_text<K>(same())));
    EXPECT_EQ(tree.size(), 0u);
    {
      FastFair<std::uint64_t, std::string> other(*this->pool_, "other");
      const std::string value(this->pool_->info().size / 2, 'v');
      other.put(1, value);
      EXPECT_TRUE(other.erase(1));
      EXPECT_LT(tree.stats().pm_bytes, kMiB) << "the rest is for others";
    }
    this->pool_->drop("other");
    expect_no_problems(tree);
    const std::uint64_t once_more = fill(tree);
    EXPECT_GE(once_more, pairs - pairs / 4);
    expect_no_problems(tree);
    detail::util::Random again(5);
    for (std::uint64_t i = 0; i < once_more; ++i)
      ASSERT_TRUE(tree.erase(number_or_text<K>(again())));
    EXPECT_EQ(tree.size(), 0u);
  }
  this->reopen();
  Engine<K, V> tree = this->template open<K, V>();
  EXPECT_EQ(tree.size(), 0u);
  expect_no_problems(tree);
}

TYPED_TEST(FullPool, LetsAnIndexBeDropped) {
  using K = typename TypeParam::K;
  using V = typename TypeParam::V;
  Pool& pool = this->create(16 * kMiB);
  const std::uint64_t before = pool.info().allocated;
  {
    Engine<K, V> tree = this->template open<K, V>();
    EXPECT_GT(fill(tree), 20'000u);
  }
  this->reopen();
  pool.drop("t");
  EXPECT_EQ(pool.info().allocated, before);
  EXPECT_EQ(this->reopen().check().problems, std::vector<std::string>{});
}

// There is no room for its log: so it has no buffers, until there is.
TYPED_TEST(FullPool, IsOpenedWithAFirstBudget) {
  using K = typename TypeParam::K;
  using V = typename TypeParam::V;
  this->create(16 * kMiB);
  std::uint64_t pairs = 0;
  {
    Engine<K, V> tree = this->template open<K, V>(0);
    pairs = fill(tree);
  }
  this->reopen();
  {
    Engine<K, V> tree = this->template open<K, V>();
    EXPECT_EQ(tree.size(), pairs);
    detail::util::Random same(5);
    for (std::uint64_t i = 0; i < pairs; ++i) ASSERT_TRUE(tree.erase(number_or_text<K>(same())));
    expect_no_problems(tree);
  }
  EXPECT_FALSE((this->template has_log<K, V>()));
  this->reopen();
  { const Engine<K, V> tree = this->template open<K, V>(); }
  EXPECT_TRUE((this->template has_log<K, V>()));
}

// Whichever keys they are: what a restart reads, and what the log keeps, is bounded.
TEST_F(LogSpaceTest, WritesOfFewKeysKeepTheLogShort) {
  for (std::uint64_t first = 0; first < 4; ++first) {
    Pool& pool = create();
    {
      SpTree<std::uint64_t, std::uint64_t> tree(pool, "t", log_options(kUnlimited));
      for (std::uint64_t i = 0; i < 400'000; ++i) {
        const std::uint64_t key = 1000 * first + i % 8;
        if (i / 8 % 2 == 0) tree.put(key, i);
        if (i / 8 % 2 == 1) tree.erase(key);
      }
      EXPECT_LT(tree.stats().pm_bytes, 8 * kMiB) << "from key " << 1000 * first;
    }
    EXPECT_LT(ask_log([](const detail::wal::Log& log) { return log.suffix_bytes(); }), 5 * kMiB);
    pool.close();
    std::filesystem::remove(path_);
  }
}

// A part of the index stays cold, which keeps the log from being forgotten, unless writers care.
TEST_F(LogSpaceTest, LongWritingWithoutTheBackgroundKeepsTheLogShort) {
  Pool& pool = create();
  constexpr std::uint64_t kKeys = 300'000;
  {
    SpTree<std::uint64_t, std::uint64_t> tree(pool, "t", log_options(kUnlimited));
    detail::util::Random random(1);
    for (std::uint64_t i = 0; i < kKeys; ++i) tree.put(random(), i);
  }
  reopen();
  {
    SpTree<std::uint64_t, std::uint64_t> tree(pool, "t", log_options(kUnlimited, false));
    for (std::uint64_t i = 0; i < 400'000; ++i) {
      if (i / 8 % 2 == 0) tree.put(i % 8, i);
      if (i / 8 % 2 == 1) tree.erase(i % 8);
    }
    EXPECT_EQ(tree.stats().resumed, 1);
    expect_no_problems(tree);
    EXPECT_EQ(tree.size(), kKeys);
  }
  EXPECT_LT(ask_log([](const detail::wal::Log& log) { return log.suffix_bytes(); }), 5 * kMiB);
}

/// DRAM of an index of this many keys after it was opened with a budget, and written to.
class BudgetTest : public LogSpaceTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr std::uint64_t kKeys = 200'000;

  std::uint64_t bytes_after(std::uint64_t first_budget, std::uint64_t budget) {
    create();
    {
      SpTree<std::uint64_t, std::uint64_t> tree(*pool_, "t", log_options(first_budget));
      detail::util::Random random(1);
      for (std::uint64_t i = 0; i < kKeys; ++i) tree.put(random(), i);
    }
    reopen();
    std::uint64_t bytes = 0;
    {
      SpTree<std::uint64_t, std::uint64_t> tree(*pool_, "t", log_options(budget, GetParam() != 0));
      detail::util::Random random(1);
      for (std::uint64_t i = 0; i < kKeys; ++i) EXPECT_TRUE(tree.update(random(), i + 1));
      expect_no_problems(tree);
      bytes = tree.stats().dram_bytes;
    }
    pool_->close();
    std::filesystem::remove(path_);
    return bytes;
  }
};

// At the first opening with it, not only at the one after.
TEST_P(BudgetTest, ASmallerBudgetIsHonoured) {
  const std::uint64_t with_none = bytes_after(0, 0);
  const std::uint64_t with_all = bytes_after(kUnlimited, kUnlimited);
  const std::uint64_t shrunk = bytes_after(kUnlimited, 0);
  // Leaves that lack slots for what their buffers hold need those until they have been split.
  EXPECT_LT(shrunk, with_none + (with_all - with_none) / 3);
}

INSTANTIATE_TEST_SUITE_P(Background, BudgetTest, testing::Values(0, 1));

TEST_F(LogSpaceTest, AnEmptiedIndexOfOneLeafKeepsNoLogWithoutBuffers) {
  create();
  {
    auto tree = open<std::uint64_t, std::uint64_t>();
    for (std::uint64_t key = 0; key < 200'000; ++key) tree.put(key, key);
    for (std::uint64_t key = 0; key < 200'000; ++key) tree.erase(key);
    ASSERT_EQ(tree.stats().leaves, 1u);
  }
  reopen();
  ASSERT_GT(pool_->info().allocated, kMiB);
  open<std::uint64_t, std::uint64_t>(0);
  reopen();
  EXPECT_LT(pool_->info().allocated, kMiB);
}

TEST_F(LogSpaceTest, StatisticsKnowLargeValuesThatWereUpdated) {
  for (const std::uint64_t budget : {std::uint64_t{0}, kUnlimited}) {
    Pool& pool = create();
    std::uint64_t before = 0;
    {
      SpTree<std::uint64_t, std::string> tree(pool, "t", log_options(budget));
      for (const std::size_t size : {40'000, 1'000'000, 10, 40'000})
        tree.put(1, std::string(size, 'v'));
      before = tree.stats().pm_bytes;
      EXPECT_LT(before, 2 * kMiB);
    }
    reopen();
    EXPECT_EQ((SpTree<std::uint64_t, std::string>(pool, "t", log_options(budget)).stats().pm_bytes),
              before);
    pool.close();
    std::filesystem::remove(path_);
  }
}

// Segments of a log that holds nothing keep no chunk from large values.
TEST_F(LogSpaceTest, ALargeValueFitsWhereManySmallOnesWere) {
  Pool& pool = create(64 * kMiB);
  SpTree<std::uint64_t, std::string> tree(pool, "t", log_options(kUnlimited));
  const auto fill_and_erase = [&](std::size_t size) {
    std::uint64_t count = 0;
    try {
      for (;; ++count) tree.put(count, std::string(size, 'v'));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
    }
    for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(tree.erase(i));
    return count;
  };
  EXPECT_GT(fill_and_erase(1000), 30'000u);
  EXPECT_GE(fill_and_erase(20 * kMiB), 1u);
  expect_no_problems(tree);
}

}  // namespace
}  // namespace perdix
