// The red-black tree of <bsd/sys/tree.h> (Niels Provos, 2002), as a plug-in of Tips behind one
// readers-writer lock. The header is used as it is. Its macros take the node's type, so the fields
// that they store to announce themselves: no store can be forgotten.
//
// `Memory` is where it lies: perdix::tips::Volatile or Durable.
#pragma once

#include <bsd/sys/tree.h>

#include <cstdint>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "converted/announced.h"

namespace perdix::examples {

template <class Memory, class Keys>
class RedBlackTree {
 public:
  using Word = tips::Word;

  bool put(Word key, Word value, Word& old) {
    const std::unique_lock guard(lock_);
    Node probe(key, value);
    if (Node* const node = RB_FIND(Tree, &tree_, &probe)) {
      old = node->value;
      node->value = value;
      return true;
    }
    auto* const node = new (Memory::allocate(sizeof(Node))) Node(key, value);
    RB_INSERT(Tree, &tree_, node);
    size_ = size_ + 1;
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const std::unique_lock guard(lock_);
    Node* const node = find_node(key);
    if (node == nullptr) return false;
    old_key = node->key, old_value = node->value;
    RB_REMOVE(Tree, &tree_, node);
    size_ = size_ - 1;
    Memory::free(node);
    return true;
  }

  bool find(Word key, Word& value) const {
    const std::shared_lock guard(lock_);
    const Node* const node = find_node(key);
    if (node != nullptr) value = node->value;
    return node != nullptr;
  }

  std::uint64_t size() const {
    const std::shared_lock guard(lock_);
    return size_;
  }

  void scan(const Word* from, void* context, tips::ShowPair show) const {
    const std::shared_lock guard(lock_);
    Node* node = from != nullptr ? find_from(*from) : RB_MIN(Tree, &tree_);
    while (node != nullptr && show(context, node->key, node->value))
      node = RB_NEXT(Tree, &tree_, node);
  }

  bool find_last(Word bound, bool strictly, Word& key, Word& value) const {
    const std::shared_lock guard(lock_);
    Node* node = find_from(bound);
    if (node == nullptr)
      node = RB_MAX(Tree, &tree_);
    else if (strictly || !Keys::equal(node->key, bound))
      node = RB_PREV(Tree, &tree_, node);
    if (node != nullptr) key = node->key, value = node->value;
    return node != nullptr;
  }

  /// In order. Also that no red node is below another one, and that all ways down have as many
  /// black nodes.
  bool inspect(tips::Inspector& inspector) const {
    std::vector<Below> path;
    const Node* previous = nullptr;
    std::uint64_t pairs = 0;
    int blacks_below = -1;  // of the first way down
    if (!inspect_left(inspector, nullptr, tree_.rbh_root, 0, path)) return false;
    for (; !path.empty(); ++pairs) {
      const auto [node, blacks] = path.back();
      path.pop_back();
      if (previous != nullptr && !Keys::less(previous->key, node->key)) return false;
      previous = node;
      for (const Node* child : {node->links.rbe_left, node->links.rbe_right}) {
        if (child != nullptr) continue;
        if (blacks_below < 0) blacks_below = blacks;
        if (blacks != blacks_below) return false;
      }
      if (!inspect_left(inspector, node, node->links.rbe_right, blacks, path)) return false;
    }
    return pairs == size_;
  }

  void renew_locks() { new (&lock_) tips::SpinningSharedMutex; }

  static constexpr tips::PutTakes put_takes() { return {{{sizeof(Node), 1}}}; }

 private:
  struct Node {
    Node(Word its_key, Word its_value) : key(its_key), value(its_value) {}

    const Word key;
    Announced<Memory, Word> value;
    struct {  // as RB_ENTRY() has them
      Announced<Memory, Node*> rbe_left, rbe_right, rbe_parent;
      Announced<Memory, int> rbe_color;
    } links;
  };

  struct Tree {  // as RB_HEAD() has it
    Announced<Memory, Node*> rbh_root;
  };

  static int compare(const Node* a, const Node* b) {
    return Keys::less(a->key, b->key) ? -1 : Keys::equal(a->key, b->key) ? 0 : 1;
  }

  RB_GENERATE_INTERNAL(Tree, Node, links, compare, static)

  Node* find_node(Word key) const {
    Node probe(key, 0);
    return RB_FIND(Tree, &tree_, &probe);
  }

  /// The first node whose key is not below `key`.
  Node* find_from(Word key) const {
    Node probe(key, 0);
    return RB_NFIND(Tree, &tree_, &probe);
  }

  struct Below {
    const Node* node;
    int blacks;  // from the root to it
  };

  /// Adds a node below `above`, above which are so many black ones, and all that are left of it.
  static bool inspect_left(tips::Inspector& inspector, const Node* above, const Node* node,
                           int blacks, std::vector<Below>& path) {
    for (; node != nullptr; above = node, node = node->links.rbe_left) {
      if (!inspector.node(node, sizeof(Node)) || !inspector.pair(node->key, node->value))
        return false;
      const int color = node->links.rbe_color;
      if (node->links.rbe_parent != above || (color != RB_RED && color != RB_BLACK)) return false;
      if (color == RB_RED && (above == nullptr || above->links.rbe_color == RB_RED)) return false;
      if (color == RB_BLACK) ++blacks;
      path.push_back({node, blacks});
    }
    return true;
  }

  mutable tips::SpinningSharedMutex lock_;  // guards what follows
  mutable Tree tree_;                       // the lookups of the header take no const
  Announced<Memory, std::uint64_t> size_ = 0;
};

}  // namespace perdix::examples
