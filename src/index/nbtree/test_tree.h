// A pool with one tree in it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <perdix/pool.h>

#include "index/nbtree/ledger.h"
#include "index/nbtree/nbtree.h"
#include "pool/pool_core.h"

namespace perdix::index::nbtree {

template <class K, class V>
class TestTree {
 public:
  TestTree() : pool_(Pool::create(path_, pool_options())) { open(); }
  ~TestTree() {
    close();
    std::filesystem::remove(path_);
  }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;

  Tree<K, V>& operator*() { return *tree_; }
  Tree<K, V>* operator->() { return &*tree_; }

  void reopen(const IndexOptions& options = {}) {
    close();
    pool_.close();
    pool_ = Pool::open(path_, pool_options());
    open(options);
  }

  /// Opened a moment ago: all leaves are cold until they are needed.
  void reopen_cold() {
    IndexOptions options;
    options.resume_in_background = false;
    reopen(options);
  }

  pool::PoolCore& core() { return *pool_.core(); }
  /// The block of the first leaf.
  Block& first_block() { return *core().template at<Block>(root().anchors[0].block); }
  Root& root() { return *core().template at<Root>(root_); }

  /// Allocates two blocks, as so many operations do that a crash interrupts before they have linked
  /// them.
  void claim_and_forget(std::uint64_t bytes, unsigned operations = 1) {
    close();
    Ledger ledger(core(), root());
    std::vector<std::unique_ptr<Ledger::Hold>> holds;
    for (unsigned i = 0; i < operations; ++i) {
      auto& hold =
          *holds.emplace_back(std::make_unique<Ledger::Hold>(ledger, Ledger::Purpose::operation));
      hold.claim([&](alloc::Session& session) {
        return std::array<pm::Offset, 4>{session.reserve(bytes), session.reserve(bytes)};
      });
    }
    for (auto& hold : holds) hold->abandon();
  }

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
  static PoolOptions pool_options() {
    PoolOptions options;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  void open(const IndexOptions& options = {}) {
    auto handle = pool_.core()->open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    std::uint64_t& root = handle.root();
    tree_.emplace(std::move(handle), options);
    root_ = root;
  }
  void close() { tree_.reset(); }

  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() /
      fmt::format("nbtree_test.{}.{}", ::getpid(), static_cast<const void*>(this));
  Pool pool_;
  std::optional<Tree<K, V>> tree_;
  pm::Offset root_ = pm::kNull;
};

}  // namespace perdix::index::nbtree
