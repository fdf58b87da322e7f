// What tests of an engine need around one index: a new pool in a file that is removed with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/index.h>
#include <perdix/pool.h>

#include "pool/pool_core.h"
#include "util/test_directory.h"

namespace perdix::detail::index {

using Number = std::uint64_t;

template <class T>
T datum(Number number) {
  if constexpr (std::is_same_v<T, std::string>) {
    return number == 0 ? "" : std::string(number % 3 * 20, 'p') + std::to_string(number);
  } else {
    return number;
  }
}

template <class K, class V>
struct Kinds {
  using Key = K;
  using Value = V;
};

using AllKinds = ::testing::Types<Kinds<Number, Number>, Kinds<Number, std::string>,
                                  Kinds<std::string, Number>, Kinds<std::string, std::string>>;

/// `Derived` opens and closes the index of the name "t", by open() and close(), and is a pointer to
/// it.
template <class Derived>
class TestPool {
 public:
  /// With all engines: a program has those only that something in it names, and a tree under test
  /// does not.
  TestPool() : pool_(Pool::create(path_, options())) { EXPECT_FALSE(Index::engines().empty()); }
  TestPool(const TestPool&) = delete;
  TestPool& operator=(const TestPool&) = delete;

  pool::PoolCore& core() { return *pool_.core(); }
  std::uint64_t allocated() { return pool_.info().allocated; }

  void expect_sound() {
    for (const std::string& problem : self()->check().problems) ADD_FAILURE() << problem;
  }

  /// Also that no block is lost.
  void expect_sound_pool() {
    expect_sound();
    self().close();
    for (const std::string& problem : pool_.check().problems) ADD_FAILURE() << problem;
    self().open();
  }

  /// Of a pool whose index is closed, as that could not be opened.
  CheckReport check_pool() { return pool_.check(); }

  void drop() {
    self().close();
    pool_.drop("t");
    self().open();
  }

 protected:
  /// Closes the index, and the pool, which it opens again.
  void reopen_pool() {
    self().close();
    pool_.close();
    pool_ = Pool::open(path_, options());
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }

  /// Tests make many pools: addresses for each are few.
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  testing_files::TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("index.pool");
  Pool pool_;
};

/// The map, which has no order, shows the pairs of the model, finds and counts them.
template <class TestMap, class Model>
void expect_pairs(TestMap& map, const Model& model) {
  Model found;
  map->for_each([&](auto key, auto value) {
    EXPECT_TRUE(found.emplace(key, value).second) << "shown twice";
    return true;
  });
  EXPECT_EQ(found, model);
  EXPECT_EQ(map->size(), model.size());
  for (const auto& [key, value] : model) EXPECT_EQ(map->get(key), value);
}

/// The tree shows the pairs of the model, and counts them.
template <class Tree, class Map>
void expect_same(Tree& tree, const Map& model) {
  Map found;
  tree->scan({}, [&](auto key, auto value) { return found.emplace(key, value).second; });
  EXPECT_EQ(found, model);
  EXPECT_EQ(tree->size(), model.size());
}

}  // namespace perdix::detail::index
