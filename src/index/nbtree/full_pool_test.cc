// NbTree in a pool that is full: everything can be erased, and then others can have the space.
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <perdix/papers/nbtree.h>
#include <perdix/pool.h>

#include "epoch/guard.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::detail::index::nbtree {
namespace {

template <class Kinds>
class NbTreeFullPool : public ::testing::Test {
 protected:
  using K = typename Kinds::first_type;
  using V = typename Kinds::second_type;
  using Index = NbTree<K, V>;

  NbTreeFullPool() {
    PoolOptions options;
    options.max_size = std::uint64_t{16} << 20;
    pool_ = Pool::create(path_, options);
  }

  template <class T>
  static T datum(std::uint64_t number) {
    util::Random random(number + 1);
    if constexpr (std::is_same_v<T, std::string>) {
      return std::to_string(random());
    } else {
      return random();
    }
  }

  /// As many as another index must have room for. Not all: where its blocks lie among those that
  /// are not free as yet, a span goes on to serve the size that it has.
  static std::uint64_t most_of(std::uint64_t count) { return count * 4 / 5; }

  static K key(std::uint64_t number) { return datum<K>(number); }

  /// Puts pairs until there is no space. Returns how many.
  static std::uint64_t fill(Index& tree) {
    std::uint64_t count = 0;
    try {
      for (;; ++count) tree.put(key(count), datum<V>(count));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space) << error.what();
    }
    return count;
  }

  testing_files::TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("full.pool");
  std::optional<Pool> pool_;
};

using Kinds =
    ::testing::Types<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::uint64_t, std::string>,
                     std::pair<std::string, std::uint64_t>, std::pair<std::string, std::string>>;
TYPED_TEST_SUITE(NbTreeFullPool, Kinds);

TYPED_TEST(NbTreeFullPool, AllCanBeErasedAndOthersHaveTheSpace) {
  using Tree = typename TestFixture::Index;
  Tree tree(*this->pool_, "first");
  const std::uint64_t count = this->fill(tree);
  ASSERT_GT(count, 10'000u);
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(tree.erase(this->key(i))) << i;
  EXPECT_EQ(tree.size(), 0u);
  Tree other(*this->pool_, "second");
  EXPECT_GE(this->fill(other), this->most_of(count));
  for (const std::string& problem : tree.check().problems) ADD_FAILURE() << problem;
  for (const std::string& problem : other.check().problems) ADD_FAILURE() << problem;
}

/// While a reader keeps all that is unlinked from being freed, leaves can't be joined. They are
/// when there is space.
TYPED_TEST(NbTreeFullPool, EmptiedLeavesAreJoinedWhenSpaceComes) {
  using Tree = typename TestFixture::Index;
  Tree tree(*this->pool_, "first");
  const std::uint64_t count = this->fill(tree);
  const std::uint64_t leaves = tree.stats().leaves;
  std::uint64_t erased = 0;
  try {
    const epoch::Guard guard;
    for (; erased < count; ++erased) ASSERT_TRUE(tree.erase(this->key(erased)));
  } catch (const Error& error) {  // of strings, whose names need space
    EXPECT_EQ(error.code(), Errc::out_of_space);
  }
  if (erased == count) {
    EXPECT_GT(tree.stats().leaves, leaves / 2);
  }
  for (; erased < count; ++erased) ASSERT_TRUE(tree.erase(this->key(erased)));
  Tree other(*this->pool_, "second");
  EXPECT_GE(this->fill(other), this->most_of(count));
  EXPECT_LE(tree.stats().leaves, 8u);
  for (const std::string& problem : tree.check().problems) ADD_FAILURE() << problem;
}

TEST(NbTreeFullPools, BigValuesFitWhenSmallOnesAreErased) {
  const testing_files::TempDirectory directory;
  const auto path = directory.file("big.pool");
  PoolOptions options;
  options.max_size = std::uint64_t{96} << 20;
  {
    const auto pool = Pool::create(path, options);
    NbTree<std::uint64_t, std::string> tree(pool, "t");
    const auto fill = [&](std::size_t size) {
      const std::string value(size, 'v');
      std::uint64_t count = 0;
      try {
        for (;; ++count) tree.put(count, value);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::out_of_space);
      }
      for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(tree.erase(i));
      return count;
    };
    EXPECT_GT(fill(1000), 80'000u);
    EXPECT_GE(fill(20'000'000), 1u);
    EXPECT_GT(fill(1000), 80'000u);
    for (const std::string& problem : tree.check().problems) ADD_FAILURE() << problem;
  }
}

}  // namespace
}  // namespace perdix::detail::index::nbtree
