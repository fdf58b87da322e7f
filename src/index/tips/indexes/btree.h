// A B+-tree with a readers-writer lock.
//
// Full nodes are split on the way down, so that an insert finds room everywhere. A node with too
// few entries takes some of a neighbour or becomes one with it, so only the root may have less than
// kMinEntries. In an inner node, the key of an entry is the least key below it; that of the first
// entry of a level means nothing. It is the very word of the first key of a leaf, so an inner node
// never refers to a key that is gone.
//
// `Memory` is where it lies: Volatile or Durable (index/tips/plugin.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>

#include "index/tips/plugin.h"
#include "util/spinning_shared_mutex.h"

namespace perdix::detail::index::tips {

template <class Memory, class Keys>
class BTree {
 public:
  bool put(Word key, Word value, Word& old) {
    const std::unique_lock guard(lock_);
    if (root_ == nullptr) change(root_) = new_node(0);
    if (root_->count == kFanout) add_root();
    Node* node = root_;
    while (node->level > 0) {
      const unsigned i = child_of(*node, key);
      if (child(*node, i)->count == kFanout) {
        split(*node, i);
      } else {
        node = child(*node, i);
      }
    }
    const unsigned i = rank(*node, key);
    if (i < node->count && Keys::equal(node->entries[i].key, key)) {
      old = node->entries[i].slot;
      change(node->entries[i].slot) = value;
      return true;
    }
    insert(change(*node, i), i, key, value);
    ++change(size_);
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const std::unique_lock guard(lock_);
    Step path[kMaxLevels];
    unsigned depth = 0;
    Node* node = root_;
    for (; node != nullptr && node->level > 0; node = child(*node, path[depth++].at))
      path[depth] = {node, child_of(*node, key)};
    const unsigned i = node == nullptr ? 0 : rank(*node, key);
    if (node == nullptr || i == node->count || !Keys::equal(node->entries[i].key, key))
      return false;
    old_key = node->entries[i].key, old_value = node->entries[i].slot;
    remove(change(*node, i), i);
    --change(size_);
    for (unsigned level = 0; level < depth && i == 0; ++level) {
      Node& above = *path[level].node;
      if (above.entries[path[level].at].key == old_key)
        change(above).entries[path[level].at].key = node->entries[0].key;
    }
    while (depth > 0 && node->count < kMinEntries) {
      const Step step = path[--depth];
      balance(*step.node, step.at == 0 ? 0 : step.at - 1);
      node = step.node;
    }
    drop_root();
    return true;
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    const std::shared_lock guard(lock_);
    const Node* node = root_;
    if (node == nullptr) return false;
    for (;; node = child(*node, child_of(*node, key))) {
      if (!is_readable(trust, node)) return trust.damaged();
      if (node->level == 0) break;
    }
    const unsigned i = rank(*node, key);
    if (i == node->count || !Keys::equal(node->entries[i].key, key)) return false;
    value = node->entries[i].slot;
    return true;
  }

  std::uint64_t size() const {
    const std::shared_lock guard(lock_);
    return size_;
  }

  void scan(const Word* from, void* context, ShowPair show) const {
    const std::shared_lock guard(lock_);
    const Node* leaf = leaf_of(from);
    unsigned i = from == nullptr || leaf == nullptr ? 0 : rank(*leaf, *from);
    for (; leaf != nullptr; leaf = leaf->next, i = 0)
      for (; i < leaf->count; ++i)
        if (!show(context, leaf->entries[i].key, leaf->entries[i].slot)) return;
  }

  bool find_last(Word bound, bool strictly, Word& key, Word& value) const {
    const std::shared_lock guard(lock_);
    return root_ != nullptr && find_last(*root_, bound, strictly, key, value);
  }

  bool inspect(Inspector& inspector) const {
    if (root_ == nullptr) return size_ == 0;
    Inspection inspection{inspector, {}, nullptr, 0};
    if (!inspector.node(root_, sizeof(Node)) || root_->level >= kMaxLevels) return false;
    if (root_->level > 0 && root_->count < 2) return false;
    return inspect(inspection, *root_, nullptr) && inspection.last_leaf->next == nullptr &&
           inspection.pairs == size_;
  }

  void renew_locks() { new (&lock_) util::SpinningSharedMutex; }

  /// Most puts split no node, and few split more than one.
  static constexpr PutTakes put_takes() { return {{{sizeof(Node), 2}, {}}}; }

  static constexpr unsigned kFanout = 32;
  static constexpr unsigned kMinEntries = kFanout / 4;

 private:
  static constexpr unsigned kMaxLevels = 24;

  struct Entry {
    Word key;
    Word slot;  // value, or child
  };
  struct Node {
    std::uint32_t count;
    std::uint32_t level;  // 0: leaf
    Node* next;           // of a leaf: the next one
    Entry entries[kFanout];
  };
  struct Step {
    Node* node;
    unsigned at;
  };

  static Node* new_node(std::uint32_t level) {
    return new (Memory::allocate(sizeof(Node))) Node{0, level, nullptr, {}};
  }

  /// Each change of what others can see.
  template <class T>
  static T& change(T& object) {
    Memory::add(&object, sizeof object);
    return object;
  }

  /// Announces a change of the entries from i on, of a further one, and of their count.
  static Node& change(Node& node, unsigned i) {
    change(node.count);
    const unsigned end = std::min(node.count + 1, kFanout);
    Memory::add(node.entries + i, (end - i) * sizeof(Entry));
    return node;
  }

  static Node* child(const Node& node, unsigned i) {
    return reinterpret_cast<Node*>(node.entries[i].slot);
  }

  /// How many keys of a node are less.
  static unsigned rank(const Node& node, Word key) {
    const auto less = [](const Entry& entry, Word bound) { return Keys::less(entry.key, bound); };
    const Entry* const end = node.entries + node.count;
    return static_cast<unsigned>(std::lower_bound(node.entries, end, key, less) - node.entries);
  }

  /// Which child of an inner node is responsible for a key.
  static unsigned child_of(const Node& node, Word key) {
    const auto less = [](Word bound, const Entry& entry) { return Keys::less(bound, entry.key); };
    const Entry* const end = node.entries + node.count;
    const Entry* const after = std::upper_bound(node.entries + 1, end, key, less);
    return static_cast<unsigned>(after - node.entries - 1);
  }

  template <class Trust>
  static bool is_readable(const Trust& trust, const Node* node) {
    if constexpr (!Trust::kDoubts) return true;
    if (!trust.readable(node, sizeof(Node)) || node->count == 0 || node->count > kFanout)
      return false;
    // The first key of an inner node means nothing.
    for (unsigned i = node->level == 0 ? 0 : 1; i < node->count; ++i)
      if (!trust.key(node->entries[i].key)) return false;
    return true;
  }

  /// The leaf of a key; null: of the least one.
  const Node* leaf_of(const Word* key) const {
    const Node* node = root_;
    while (node != nullptr && node->level > 0)
      node = child(*node, key == nullptr ? 0 : child_of(*node, *key));
    return node;
  }

  static void insert(Node& node, unsigned i, Word key, Word slot) {
    Entry* const end = node.entries + node.count;
    std::copy_backward(node.entries + i, end, end + 1);
    node.entries[i] = {key, slot};
    ++node.count;
  }

  static void remove(Node& node, unsigned i) {
    std::copy(node.entries + i + 1, node.entries + node.count, node.entries + i);
    --node.count;
  }

  /// Copies entries to the end of a left neighbour.
  static void append(Node& to, const Node& from, unsigned begin, unsigned end) {
    std::copy(from.entries + begin, from.entries + end, to.entries + to.count);
    to.count += end - begin;
  }

  void add_root() {
    Node* const root = new_node(root_->level + 1);
    insert(*root, 0, 0, reinterpret_cast<Word>(root_));
    change(root_) = root;
  }

  void drop_root() {
    Node* const root = root_;
    if (root->count > 1 || (root->level == 0 && root->count > 0)) return;
    change(root_) = root->level == 0 ? nullptr : child(*root, 0);
    Memory::free(root);
  }

  /// Of a full child; the parent has room.
  static void split(Node& parent, unsigned i) {
    Node* const right = new_node(child(parent, i)->level);
    Node& left = change(*child(parent, i));
    append(*right, left, kFanout / 2, kFanout);
    left.count = kFanout / 2;
    right->next = left.next;
    if (left.level == 0) left.next = right;
    insert(change(parent, i + 1), i + 1, right->entries[0].key, reinterpret_cast<Word>(right));
  }

  /// Child i and the next one become one, or have as many entries each.
  static void balance(Node& parent, unsigned i) {
    Node &left = change(*child(parent, i)), &right = change(*child(parent, i + 1));
    const unsigned total = left.count + right.count;
    if (total <= kFanout) {
      append(left, right, 0, right.count);
      left.next = right.next;
      remove(change(parent, i + 1), i + 1);
      Memory::free(&right);
    } else if (left.count < right.count) {
      const unsigned moved = total / 2 - left.count;
      append(left, right, 0, moved);
      for (unsigned n = 0; n < moved; ++n) remove(right, 0);
      change(parent).entries[i + 1].key = right.entries[0].key;
    } else {
      for (unsigned n = left.count; n > total / 2; --n)
        insert(right, 0, left.entries[n - 1].key, left.entries[n - 1].slot);
      left.count = total / 2;
      change(parent).entries[i + 1].key = right.entries[0].key;
    }
  }

  static bool find_last(const Node& node, Word bound, bool strictly, Word& key, Word& value) {
    if (node.level == 0) {
      unsigned i = rank(node, bound);
      if (!strictly && i < node.count && Keys::equal(node.entries[i].key, bound)) ++i;
      if (i == 0) return false;
      key = node.entries[i - 1].key, value = node.entries[i - 1].slot;
      return true;
    }
    const unsigned i = child_of(node, bound);
    return find_last(*child(node, i), bound, strictly, key, value) ||
           (i > 0 && find_last(*child(node, i - 1), bound, strictly, key, value));
  }

  struct Inspection {
    Inspector& inspector;
    std::optional<Word> previous;  // key
    const Node* last_leaf;
    std::uint64_t pairs;
  };

  /// Of a node that may be read. `low`: its first key; null: it is the first of its level.
  bool inspect(Inspection& inspection, const Node& node, const Word* low) const {
    const bool root = &node == root_;
    if (node.count > kFanout || node.count < (root ? 1 : kMinEntries)) return false;
    if (node.level == 0) return inspect_leaf(inspection, node, low);
    if (node.next != nullptr || (low != nullptr && node.entries[0].key != *low)) return false;
    for (unsigned i = 0; i < node.count; ++i) {
      const Node* const below = child(node, i);
      if (!inspection.inspector.node(below, sizeof(Node)) || below->level + 1 != node.level)
        return false;
      if (!inspect(inspection, *below, i == 0 ? low : &node.entries[i].key)) return false;
    }
    return true;
  }

  static bool inspect_leaf(Inspection& inspection, const Node& leaf, const Word* low) {
    if (inspection.last_leaf != nullptr && inspection.last_leaf->next != &leaf) return false;
    inspection.last_leaf = &leaf;
    for (unsigned i = 0; i < leaf.count; ++i) {
      if (!inspection.inspector.pair(leaf.entries[i].key, leaf.entries[i].slot)) return false;
      if (inspection.previous && !Keys::less(*inspection.previous, leaf.entries[i].key))
        return false;
      inspection.previous = leaf.entries[i].key;
      ++inspection.pairs;
    }
    return low == nullptr || *low == leaf.entries[0].key;
  }

  mutable util::SpinningSharedMutex lock_;  // guards what follows
  Node* root_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace perdix::detail::index::tips
