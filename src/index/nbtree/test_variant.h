// A pool with one tree of a given form in it.
#pragma once

#include <optional>
#include <utility>

#include "index/common/test_pool.h"
#include "index/nbtree/variants.h"

namespace perdix::detail::index::nbtree {

template <class Form>
class TestVariant : public TestPool<TestVariant<Form>> {
 public:
  using TestPool<TestVariant>::core;

  TestVariant() { open(); }

  Variant<Form>& operator*() { return *tree_; }
  Variant<Form>* operator->() { return &*tree_; }

  /// `cold`: a leaf comes back when it is needed, and not before.
  void reopen(bool cold) {
    this->reopen_pool();
    NbTreeOptions options;
    options.resume_in_background = !cold;
    open(options);
  }

 private:
  friend class TestPool<TestVariant>;

  void open(const NbTreeOptions& options = {}) {
    constexpr Kind kNumber = kKindOf<std::uint64_t>;
    tree_.emplace(core().open_index("t", kEngineName, kNumber, kNumber), options);
  }
  void close() { tree_.reset(); }

  std::optional<Variant<Form>> tree_;
};

}  // namespace perdix::detail::index::nbtree
