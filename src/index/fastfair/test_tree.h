// A pool with one tree in it that tests can open with a small fanout, so that few keys make it
// high.
#pragma once

#include <optional>
#include <string>

#include "index/common/test_pool.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

template <class K, class V>
class TestTree : public TestPool<TestTree<K, V>> {
 public:
  using TestPool<TestTree>::core;

  explicit TestTree(unsigned fanout, const FastFairOptions& options = {})
      : fanout_(fanout), options_(options) {
    open();
  }

  /// How it is opened from now on.
  void set_options(const FastFairOptions& options) { options_ = options; }

  Tree<K, V>& operator*() { return *tree_; }
  Tree<K, V>* operator->() { return &*tree_; }

  void reopen() {
    this->reopen_pool();
    open();
  }

  void reopen_index() {
    close();
    open();
  }
  void reopen_index(const FastFairOptions& options) {
    options_ = options;
    reopen_index();
  }

  Node& root() { return checked_node(core(), root_word(core(), handle_->root(), false)); }
  Head* head() { return head_at(core(), handle_->root()); }
  Node& node_at(pm::Offset offset) { return checked_node(core(), offset); }
  unsigned height() { return meta_of(root()).level; }

 private:
  friend class TestPool<TestTree>;

  void open() {
    handle_.emplace(core().open_index("t", kEngineName, kKindOf<K>, kKindOf<V>));
    tree_.emplace(core(), handle_->root(), fanout_, Latches::kBits, options_);
  }
  void close() {
    tree_.reset();
    handle_.reset();
  }

  const unsigned fanout_;
  FastFairOptions options_;
  std::optional<pool::IndexHandle> handle_;
  std::optional<Tree<K, V>> tree_;
};

}  // namespace perdix::detail::index::fastfair
