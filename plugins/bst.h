// A binary search tree with a readers-writer lock. It is a treap (Seidel and Aragon 1996): the hash
// of a key is its priority, and no node below another one has a higher priority. So the keys alone
// decide the shape of the tree, and ascending keys do not degrade it to a list.
//
// `Memory` is where it lies: Volatile or Durable (perdix/tips_plugin.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <type_traits>
#include <vector>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

namespace perdix::tips::plugins {

template <class Memory, class Keys>
class Bst {
 public:
  bool put(Word key, Word value, Word& old) {
    const std::unique_lock guard(lock_);
    const std::uint64_t priority = Keys::hash(key);
    Node** link = &root_;
    while (*link != nullptr && is_above(**link, priority, key)) link = &side(**link, key);
    if (*link != nullptr && Keys::equal((*link)->key, key)) {
      old = (*link)->value;
      set((*link)->value, value);
      return true;
    }
    Node* const node =
        new (Memory::allocate(sizeof(Node))) Node{key, value, priority, nullptr, nullptr};
    split(*link, *node);
    set(*link, node);
    set(size_, size_ + 1);
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const std::unique_lock guard(lock_);
    Node** link = &root_;
    while (*link != nullptr && !Keys::equal((*link)->key, key)) link = &side(**link, key);
    Node* const node = *link;
    if (node == nullptr) return false;
    old_key = node->key, old_value = node->value;
    join(*link, node->left, node->right);
    set(size_, size_ - 1);
    Memory::free(node);
    return true;
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    const std::shared_lock guard(lock_);
    const Node* node = root_;
    for (; node != nullptr; node = Keys::less(key, node->key) ? node->left : node->right) {
      if (!trust.readable(node, sizeof(Node)) || !trust.key(node->key)) return trust.damaged();
      if (Keys::equal(node->key, key)) break;
    }
    if (node != nullptr) value = node->value;
    return node != nullptr;
  }

  std::uint64_t size() const {
    const std::shared_lock guard(lock_);
    return size_;
  }

  void scan(const Word* from, void* context, ShowPair show) const {
    const std::shared_lock guard(lock_);
    std::vector<const Node*> path;  // of which the pairs are still to come, and right of them
    for (const Node* node = root_; node != nullptr;) {
      if (from != nullptr && Keys::less(node->key, *from)) {
        node = node->right;
      } else {
        path.push_back(node);
        node = node->left;
      }
    }
    while (!path.empty()) {
      const Node* node = path.back();
      path.pop_back();
      if (!show(context, node->key, node->value)) return;
      for (node = node->right; node != nullptr; node = node->left) path.push_back(node);
    }
  }

  bool find_last(Word bound, bool strictly, Word& key, Word& value) const {
    const std::shared_lock guard(lock_);
    const Node* last = nullptr;
    for (const Node* node = root_; node != nullptr;) {
      const bool beyond = strictly ? !Keys::less(node->key, bound) : Keys::less(bound, node->key);
      if (!beyond) last = node;
      node = beyond ? node->left : node->right;
    }
    if (last != nullptr) key = last->key, value = last->value;
    return last != nullptr;
  }

  bool inspect(Inspector& inspector) const {
    std::vector<const Node*> path;
    const Node* previous = nullptr;
    std::uint64_t pairs = 0;
    if (!inspect_left(inspector, nullptr, root_, path)) return false;
    for (; !path.empty(); ++pairs) {
      const Node* const node = path.back();
      path.pop_back();
      if (previous != nullptr && !Keys::less(previous->key, node->key)) return false;
      previous = node;
      if (!inspect_left(inspector, node, node->right, path)) return false;
    }
    return pairs == size_;
  }

  void renew_locks() { new (&lock_) SpinningSharedMutex; }

  static constexpr PutTakes put_takes() { return {{{sizeof(Node), 1}, {}}}; }

 private:
  struct Node {
    Word key;
    Word value;
    std::uint64_t priority;
    Node* left;
    Node* right;
  };

  /// Each change of what others can see.
  template <class T>
  static void set(T& place, std::type_identity_t<T> value) {
    Memory::add(&place, sizeof place);
    place = value;
  }

  /// Which side of a node a key belongs to.
  static Node*& side(Node& node, Word key) {
    return Keys::less(key, node.key) ? node.left : node.right;
  }

  static bool is_above(const Node& node, std::uint64_t priority, Word key) {
    return node.priority > priority || (node.priority == priority && Keys::less(node.key, key));
  }

  /// A tree becomes the two sides of a node, which it does not have.
  static void split(Node* tree, Node& node) {
    Node **left = &node.left, **right = &node.right;
    while (tree != nullptr) {
      const bool less = Keys::less(tree->key, node.key);
      Node**& end = less ? left : right;
      set(*end, tree);
      end = less ? &tree->right : &tree->left;
      tree = *end;
    }
    set(*left, nullptr);
    set(*right, nullptr);
  }

  /// Two neighbours become one tree at `link`.
  static void join(Node*& link, Node* left, Node* right) {
    Node** end = &link;
    while (left != nullptr && right != nullptr) {
      const bool over = is_above(*left, right->priority, right->key);
      Node*& top = over ? left : right;
      set(*end, top);
      end = over ? &top->right : &top->left;
      top = *end;
    }
    set(*end, left != nullptr ? left : right);
  }

  /// Adds a node below `above` and all that are left of it to a path.
  static bool inspect_left(Inspector& inspector, const Node* above, const Node* node,
                           std::vector<const Node*>& path) {
    for (; node != nullptr; above = node, node = node->left) {
      if (!inspector.node(node, sizeof(Node)) || !inspector.pair(node->key, node->value))
        return false;
      if (node->priority != Keys::hash(node->key)) return false;
      if (above != nullptr && !is_above(*above, node->priority, node->key)) return false;
      path.push_back(node);
    }
    return true;
  }

  mutable SpinningSharedMutex lock_;  // guards what follows
  Node* root_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace perdix::tips::plugins
