// The top layer (Zhao et al. 2024, section 4.1): a radix tree in DRAM that leads from keys to
// middle nodes, and the first leaf's node, which is not in the tree and never obsolete.
//
// It may lag behind the list of nodes: it leads to the right node or to one left of it, and `next`
// leads on. Where that takes more than a few steps, the top layer lacks nodes, for lack of memory
// when they were made; a thread that passes such a node adds it (T1).
//
//   T1. missing() is the number of nodes, without the first leaf's, that the top layer lacks while
//       no split or merge is under way.
//   T2. The node that a search of the top layer returns is a guess until its range was compared
//       with the key under the node's version or lock.
//
// Thread-safe, but for set_head(). The caller holds an epoch::Guard.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "index/common/node_radix.h"
#include "index/sptree/locked_node.h"
#include "index/sptree/mnode.h"
#include "util/arena.h"

namespace perdix::detail::index::sptree {

template <class K>
class TopLayer {
 public:
  using Node = Mnode<K>;
  using Key = View<K>;
  using NodeBounds = Bounds<K>;

 private:
  /// Gives the radix tree the key of a node.
  struct LowOf {
    Key operator()(const Node* node) const { return NodeBounds::view(node->low); }
  };
  using Radix = NodeRadix<Node, LowOf>;

 public:
  using Lookahead = typename Radix::Lookahead;

  /// Arena and reclaimer outlive this.
  TopLayer(util::Arena& arena, epoch::Reclaimer& reclaimer) : radix_(arena, reclaimer) {}
  TopLayer(const TopLayer&) = delete;
  TopLayer& operator=(const TopLayer&) = delete;

  /// The node of the first leaf.
  Node* head() const { return head_; }
  void set_head(Node* node) { head_ = node; }

  // --- Searches ---

  /// A node that doesn't begin after the key, as a rule the one whose range covers it.
  Node* locate(Key key) const { return or_head(radix_.locate(key)); }

  /// Begins locate() in steps: way.step() until it returns false, then start_at().
  Lookahead look_ahead(Key key) const { return radix_.look_ahead(key); }

  Node* start_at(const Lookahead& way, Key key) const { return or_head(radix_.start_at(way, key)); }

  [[gnu::noinline]] Node* locate_surely(Key key) const {
    return or_head(radix_.locate_surely(key));
  }

  /// The node that begins at the key; nullptr if there is none.
  Node* find(Key low) const { return radix_.find(low); }

  /// The last node that begins below the key.
  Node* left_of(Key key) const { return or_head(radix_.left_of(key)); }

  // --- Changes ---

  /// False, and nothing changes, if another node begins where this one does. Throws bad_alloc.
  bool add(Node& node) { return radix_.add(node); }

  /// Adds a node, which is locked or known to its locked left neighbour only. Without memory for
  /// that it is found by `next` of its left neighbour, and added later, by a thread that finds it
  /// so.
  void publish_node(Node& node) noexcept {
    try {
      add(node);
    } catch (const std::bad_alloc&) {
      missing_.fetch_add(1, std::memory_order_relaxed);  // orders nothing, as elsewhere
    }
  }

  /// Adds a node if it is missing. It is not waited for.
  void publish_if_missing(Node& node) noexcept {
    if (missing() == 0 || !node.lock.try_lock()) return;
    const LockedNode<K> locked(&node);  // so it is not merged away
    if (node.lock.is_obsolete()) return;
    try {
      if (add(node)) missing_.fetch_sub(1, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
      // Another time.
    }
  }

  /// Takes a node out that is about to be merged away. False if there was no memory for it.
  bool unlink_node(const Node& node) noexcept {
    try {
      if (!radix_.remove(node)) missing_.fetch_sub(1, std::memory_order_relaxed);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // --- Verification ---

  std::uint64_t missing() const { return missing_.load(std::memory_order_relaxed); }

  /// Calls visit(node) for the nodes of the radix tree in the order of their keys, until it returns
  /// false.
  template <class Visit>
  void for_each(Visit visit) const {
    radix_.for_each(visit);
  }

 private:
  Node* or_head(Node* node) const { return node != nullptr ? node : head_; }

  Radix radix_;
  Node* head_ = nullptr;
  std::atomic<std::uint64_t> missing_{0};  // T1
};

}  // namespace perdix::detail::index::sptree
