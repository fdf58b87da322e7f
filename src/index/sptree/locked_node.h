// A middle node whose lock is held.
#pragma once

#include <utility>

#include "index/sptree/mnode.h"

namespace perdix::detail::index::sptree {

/// Unlocks on destruction. One thread's.
template <class K>
class LockedNode {
 public:
  using Node = Mnode<K>;

  /// `node` is locked; nullptr: none.
  explicit LockedNode(Node* node) : node_(node) {}
  LockedNode(LockedNode&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  LockedNode& operator=(LockedNode&&) = delete;
  ~LockedNode() {
    if (node_ != nullptr) node_->lock.unlock();
  }

  Node& operator*() const { return *node_; }
  Node* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

  /// The lock stays held.
  Node* release() { return std::exchange(node_, nullptr); }

 private:
  Node* node_;
};

}  // namespace perdix::detail::index::sptree
