// A pool with one tree in it that tests can open with a small fanout, so that few keys make it
// high.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include <perdix/pool.h>

#include "index/fastfair/fastfair.h"
#include "pool/pool_core.h"

namespace perdix::index::fastfair {

template <class K, class V>
class TestTree {
 public:
  explicit TestTree(unsigned fanout) : fanout_(fanout), pool_(Pool::create(path_, options())) {
    open();
  }
  ~TestTree() {
    close();
    std::filesystem::remove(path_);
  }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;

  Tree<K, V>& operator*() { return *tree_; }
  Tree<K, V>* operator->() { return &*tree_; }

  void reopen() {
    close();
    pool_.close();
    pool_ = Pool::open(path_, options());
    open();
  }

  void reopen_index() {
    close();
    open();
  }

  pool::PoolCore& core() { return *pool_.core(); }
  Node& root() { return checked_node(core(), handle_->root()); }
  Node& node_at(pm::Offset offset) { return checked_node(core(), offset); }
  unsigned height() { return meta_of(root()).level; }
  std::uint64_t allocated() { return pool_.info().allocated; }

  void expect_sound() {
    for (const std::string& problem : tree_->check().problems) ADD_FAILURE() << problem;
  }

  /// Also that no block is lost.
  void expect_sound_pool() {
    expect_sound();
    close();
    for (const std::string& problem : pool_.check().problems) ADD_FAILURE() << problem;
    open();
  }

  void drop() {
    close();
    pool_.drop("t");
    open();
  }

 private:
  /// Tests make many pools: addresses for each are few.
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  void open() {
    handle_.emplace(pool_.core()->open_index("t", kEngineName, kKindOf<K>, kKindOf<V>));
    tree_.emplace(pool_.core().operator*(), handle_->root(), fanout_);
  }
  void close() {
    tree_.reset();
    handle_.reset();
  }

  const unsigned fanout_;
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() /
      fmt::format("fastfair_test.{}.{}", ::getpid(), static_cast<const void*>(this));
  Pool pool_;
  std::optional<pool::IndexHandle> handle_;
  std::optional<Tree<K, V>> tree_;
};

}  // namespace perdix::index::fastfair
