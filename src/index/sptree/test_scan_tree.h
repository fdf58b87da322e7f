// A pool with one tree in it, opened with a budget of write buffers and one of orders.
#pragma once

#include <cstdint>
#include <optional>

#include "index/common/test_pool.h"
#include "index/sptree/buffer_shape.h"
#include "index/sptree/test_tree.h"

namespace perdix::detail::index::sptree {

template <class K>
class ScanTree : public TestPool<ScanTree<K>> {
 public:
  using Tree = sptree::Tree<K, std::uint64_t>;

  explicit ScanTree(std::uint64_t buffers = 0, std::uint64_t scan_budget = kUnlimited) {
    options_.dram_budget = buffers;
    options_.scan_budget = scan_budget;
    open();
  }

  void reopen() {
    this->reopen_pool();
    open();
  }

  Tree& operator*() { return *tree_; }
  Tree* operator->() { return &*tree_; }

 private:
  friend class TestPool<ScanTree>;

  void open() {
    tree_.emplace(this->core().open_index("t", kEngineName, kKindOf<K>, Kind::u64), options_);
  }
  void close() { tree_.reset(); }

  SpTreeOptions options_;
  std::optional<Tree> tree_;
};

/// Budgets of write buffers: none, two of them, one for each leaf.
inline constexpr std::uint64_t kScanBudgets[] = {0, 2 * sizeof(WriteBuffer<int>), kUnlimited};

}  // namespace perdix::detail::index::sptree
