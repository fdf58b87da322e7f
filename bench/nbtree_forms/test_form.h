// A pool with one tree of a given form in it.
#pragma once

#include <optional>

#include "index/common/test_pool.h"
#include "nbtree_forms/forms.h"

namespace perdix::nbtree_forms {

template <class Form>
class TestForm : public engines::TestPool<TestForm<Form>> {
 public:
  using engines::TestPool<TestForm>::core;

  TestForm() { open(); }

  Form& operator*() { return *tree_; }
  Form* operator->() { return &*tree_; }

  /// `cold`: a leaf comes back when it is needed, and not before.
  void reopen(bool cold) {
    this->reopen_pool();
    NbTreeOptions options;
    options.resume_in_background = !cold;
    open(options);
  }

 private:
  friend class engines::TestPool<TestForm>;

  void open(const NbTreeOptions& options = {}) {
    constexpr Kind kNumber = Kind::u64;
    tree_.emplace(core().open_index("t", engines::nbtree::kEngineName, kNumber, kNumber), options);
  }
  void close() { tree_.reset(); }

  std::optional<Form> tree_;
};

}  // namespace perdix::nbtree_forms
