// A radix tree in DRAM that leads from keys to the nodes of an ordered index: the copy of the inner
// nodes, so that a search reads no memory of the pool before its node (Zhao et al. 2024, sections
// 3.3 and 4.1). SpTree's top layer is one; FastFair and SkipList have one beside their inner nodes
// and tall nodes in the pool.
//
// The result of a search is a guess: the tree may lag behind the index, so the node for a key may
// lie to the right of the result. The caller validates the node.
//
// KeyOf()(node) is the smallest key of a node, constant, and readable as long as a Guard may see
// the node.
//
// Thread-safe. The caller holds an epoch::Guard.
#pragma once

#include <cstddef>

#include "art/tree.h"
#include "util/arena.h"

namespace perdix::detail::index {

template <class Node, class KeyOf>
class NodeRadix {
  using Radix = art::Tree<Node*, KeyOf>;

 public:
  using Key = typename Radix::Key;
  using Lookahead = typename Radix::Lookahead;

  /// Arena and reclaimer outlive this.
  NodeRadix(util::Arena& arena, epoch::Reclaimer& reclaimer, KeyOf key_of = {})
      : radix_(art::DramMemory(arena, reclaimer), key_of), key_of_(key_of) {}

  // --- Searches: nullptr stands for all nodes before the first that is here ---

  /// A node that does not begin after the key, as a rule the last one. Nothing on the way is
  /// validated and few branches depend on what memory holds, so that the processor can begin the
  /// caller's next lookup while it waits for this one.
  Node* locate(Key key) const {
    Lookahead way = look_ahead(key);
    while (way.step()) {
    }
    return start_at(way, key);
  }

  /// Begins locate() in steps: way.step() until it returns false, then start_at().
  Lookahead look_ahead(Key key) const { return radix_.look_ahead(key); }

  /// What the way has led to, if it was of use: it is not validated.
  Node* guess(const Lookahead& way, Key key) const { return radix_.guess(way, key); }

  /// How useful a guess is: any node that does not begin after the key will do. Else the search is
  /// made again, validated.
  Node* start_at(const Lookahead& way, Key key) const {
    Node* const node = guess(way, key);
    if (node == nullptr) [[unlikely]]
      return locate_surely(key);
    if (key < key_of_(node)) [[unlikely]]
      return locate_surely(key);
    return node;
  }

  /// A node that begins before the key, as a rule the last one.
  Node* locate_below(Key key) const {
    Node* const node = locate(key);
    return node != nullptr && !(key_of_(node) < key) ? left_of(key) : node;
  }

  [[gnu::noinline]] Node* locate_surely(Key key) const { return radix_.find_floor(key); }

  /// The node that begins at the key; nullptr if there is none.
  Node* find(Key low) const { return radix_.find(low); }

  /// The last node that begins below the key.
  Node* left_of(Key key) const { return radix_.find_below(key); }

  Key key_of(const Node& node) const { return key_of_(&node); }

  // --- Changes ---

  /// False, and nothing changes, if another node begins where this one does. Throws bad_alloc.
  bool add(Node& node) { return radix_.insert(key_of_(&node), &node); }

  /// False if it is not here. Throws bad_alloc, and changes nothing: a large node of the radix tree
  /// may be replaced by a smaller one.
  bool remove(const Node& node) { return radix_.erase(key_of_(&node)) != nullptr; }

  /// Calls visit(node) in the order of keys, until it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    radix_.for_each(visit);
  }

  /// Memory of the radix tree, in bytes.
  std::size_t bytes() const { return radix_.bytes(); }

 private:
  Radix radix_;
  [[no_unique_address]] KeyOf key_of_;
};

}  // namespace perdix::detail::index
