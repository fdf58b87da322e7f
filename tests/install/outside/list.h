// A sorted linked list: an index that Tips makes durable.
#pragma once

#include <cstdint>
#include <mutex>
#include <new>
#include <shared_mutex>

#include <perdix/tips_plugin.h>

/// `Memory` is where it lies: perdix::tips::Volatile or Durable. `Keys` is how its keys compare.
template <class Memory, class Keys>
class SortedList {
 public:
  using Word = perdix::tips::Word;

  bool put(Word key, Word value, Word& old) {
    const std::unique_lock guard(lock_);
    Node*& link = link_to(key);
    if (link != nullptr && Keys::equal(link->key, key)) {
      old = link->value;
      set(link->value, value);
      return true;
    }
    Node* const node = new (Memory::allocate(sizeof(Node))) Node{key, value, link};
    set(link, node);
    set(size_, size_ + 1);
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const std::unique_lock guard(lock_);
    Node*& link = link_to(key);
    Node* const node = link;
    if (node == nullptr || !Keys::equal(node->key, key)) return false;
    old_key = node->key, old_value = node->value;
    set(link, node->next);
    set(size_, size_ - 1);
    Memory::free(node);
    return true;
  }

  bool find(Word key, Word& value) const {
    const std::shared_lock guard(lock_);
    const Node* const node = link_to(key);
    if (node == nullptr || !Keys::equal(node->key, key)) return false;
    value = node->value;
    return true;
  }

  std::uint64_t size() const {
    const std::shared_lock guard(lock_);
    return size_;
  }

  void scan(const Word* from, void* context, perdix::tips::ShowPair show) const {
    const std::shared_lock guard(lock_);
    const Node* node = from != nullptr ? link_to(*from) : first_;
    while (node != nullptr && show(context, node->key, node->value)) node = node->next;
  }

  bool find_last(Word bound, bool strictly, Word& key, Word& value) const {
    const std::shared_lock guard(lock_);
    const Node* last = nullptr;
    for (const Node* node = first_; node != nullptr; node = node->next) {
      if (Keys::less(bound, node->key) || (strictly && Keys::equal(bound, node->key))) break;
      last = node;
    }
    if (last != nullptr) key = last->key, value = last->value;
    return last != nullptr;
  }

  bool inspect(perdix::tips::Inspector& inspector) const {
    std::uint64_t pairs = 0;
    const Node* previous = nullptr;
    for (const Node* node = first_; node != nullptr; previous = node, node = node->next, ++pairs) {
      if (!inspector.node(node, sizeof(Node)) || !inspector.pair(node->key, node->value))
        return false;
      if (previous != nullptr && !Keys::less(previous->key, node->key)) return false;
    }
    return pairs == size_;
  }

  void renew_locks() { new (&lock_) std::shared_mutex; }

  static constexpr perdix::tips::PutTakes put_takes() { return {{{sizeof(Node), 1}}}; }

 private:
  struct Node {
    Word key;
    Word value;
    Node* next;
  };

  /// Each change of what was there before.
  template <class T>
  static void set(T& place, T value) {
    Memory::add(&place, sizeof place);
    place = value;
  }

  /// The link to the first node whose key is not below `key`.
  Node*& link_to(Word key) const {
    Node** link = const_cast<Node**>(&first_);
    while (*link != nullptr && Keys::less((*link)->key, key)) link = &(*link)->next;
    return *link;
  }

  mutable std::shared_mutex lock_;  // guards what follows
  Node* first_ = nullptr;
  std::uint64_t size_ = 0;
};
