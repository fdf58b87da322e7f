// A pool with one tree in it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "epoch/guard.h"
#include "index/common/test_pool.h"
#include "index/common/typed.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/nbtree.h"

namespace perdix::detail::index::nbtree {

template <class K, class V>
using Tree = TypedEngine<WordTree<K>, K, V>;

template <class K, class V>
class TestTree : public TestPool<TestTree<K, V>> {
 public:
  using TestPool<TestTree>::core;

  TestTree() { open(); }

  Tree<K, V>& operator*() { return *tree_; }
  Tree<K, V>* operator->() { return &*tree_; }

  void reopen(const NbTreeOptions& options = {}) {
    this->reopen_pool();
    open(options);
  }

  /// Opened a moment ago: all leaves are cold until they are needed.
  void reopen_cold() {
    NbTreeOptions options;
    options.resume_in_background = false;
    reopen(options);
  }

  util::Arena& arena() { return tree_->upkeep_->memory.arena(); }

  /// Without what was released and is kept for later.
  std::size_t dram_in_use() { return tree_->upkeep_->memory.arena().bytes_in_use(); }

  /// The block of the first leaf.
  Block& first_block() { return *core().template at<Block>(root().anchors[0].block); }
  Root& root() { return *core().template at<Root>(root_); }

  /// Whether a search for the key finds its leaf without asking the leaf's position.
  bool finds_leaf_at_once(View<K> key) {
    const epoch::Guard guard;
    const Leaf<K>* leaf = tree_->upkeep_->top.floor(key).leaf;
    return leaf != nullptr && !leaf->closing() && leaf->covers(key);
  }

  /// Whether a scan would find the order of the pairs in the key's leaf, and need not sort.
  bool order_kept(View<K> key) {
    const epoch::Guard guard;
    return tree_->upkeep_->scanner.has_order(*tree_->locate(key).leaf);
  }

  /// Allocates two blocks for each operation, as one does that a crash interrupts before it has
  /// linked them.
  void claim_and_forget(std::uint64_t bytes, unsigned operations = 1) {
    close();
    Ledger ledger(core(), root());
    std::vector<std::unique_ptr<Ledger::StripeLease>> leases;
    for (unsigned i = 0; i < operations; ++i) {
      auto& lease = *leases.emplace_back(
          std::make_unique<Ledger::StripeLease>(ledger, Ledger::Purpose::operation));
      lease.claim([&](alloc::Session& session) {
        return std::array<pm::Offset, 4>{session.reserve(bytes), session.reserve(bytes)};
      });
    }
    for (auto& lease : leases) lease->abandon();
  }

 private:
  friend class TestPool<TestTree>;

  void open(const NbTreeOptions& options = {}) {
    auto handle = core().open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    std::uint64_t& root = handle.root();
    tree_.emplace(std::move(handle), options);
    root_ = root;
  }
  void close() { tree_.reset(); }

  std::optional<Tree<K, V>> tree_;
  pm::Offset root_ = pm::kNull;
};

}  // namespace perdix::detail::index::nbtree
