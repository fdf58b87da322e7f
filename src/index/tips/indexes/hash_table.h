// A hash table with chains and a readers-writer lock (the paper's HT). It grows and shrinks node by
// node: while it does, it has two arrays, and each write moves some nodes into the new one. The
// bucket that is being moved has nodes in both.
//
// Buckets are chosen by the hash's highest bits. So bucket i becomes 2i and 2i + 1, or the other
// way round, and a walk by hash ranges continues where it was even if the table has another size.
//
// `Memory` is where it lies: Volatile or Durable (index/tips/plugin.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <type_traits>

#include "index/tips/plugin.h"
#include "util/spinning_shared_mutex.h"

namespace perdix::detail::index::tips {

template <class Memory, class Keys>
class HashTable {
 public:
  bool put(Word key, Word value, Word& old) {
    const std::unique_lock guard(lock_);
    if (buckets_ == nullptr) set(buckets_, new_array(kFirstBits));
    move_some();
    const std::uint64_t hash = Keys::hash(key);
    Node*& link = find_link(hash, key);
    if (link != nullptr) {
      old = link->value;
      set(link->value, value);
      return true;
    }
    Node* const node = new (Memory::allocate(sizeof(Node))) Node{nullptr, hash, key, value};
    set(link, node);
    set(size_, size_ + 1);
    if (size_ > array_size(bits_)) try_resize(bits_ + 1);
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const std::unique_lock guard(lock_);
    if (buckets_ == nullptr) return false;
    move_some();
    Node*& link = find_link(Keys::hash(key), key);
    if (link == nullptr) return false;
    Node* const node = link;
    old_key = node->key, old_value = node->value;
    set(link, node->next);
    set(size_, size_ - 1);
    Memory::free(node);
    if (size_ == 0) {
      clear();
    } else if (bits_ > kFirstBits && size_ <= array_size(bits_) / kSparse) {
      try_resize(bits_ - 1);
    }
    return true;
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    const std::shared_lock guard(lock_);
    if (buckets_ == nullptr) return false;
    if (!are_readable(trust)) return trust.damaged();
    const std::uint64_t hash = Keys::hash(key);
    for (const Node* first : chains_of(hash)) {
      for (const Node* node = first; node != nullptr; node = node->next) {
        if (!trust.readable(node, sizeof(Node))) return trust.damaged();
        if (node->hash != hash) continue;
        if (!trust.key(node->key)) return trust.damaged();
        if (Keys::equal(node->key, key)) return value = node->value, true;
      }
    }
    return false;
  }

  std::uint64_t size() const {
    const std::shared_lock guard(lock_);
    return size_;
  }

  /// Shows the pairs of a bucket, from a hash on. Returns the first hash of the next bucket.
  std::uint64_t walk(std::uint64_t hash, void* context, ShowPair show) const {
    const std::shared_lock guard(lock_);
    if (buckets_ == nullptr) return 0;
    const std::uint64_t i = hash >> (64 - bits_);
    const auto show_chain = [&](const Node* node) {
      for (; node != nullptr; node = node->next)
        if (node->hash >= hash && node->hash >> (64 - bits_) == i)
          show(context, node->key, node->value);
    };
    if (i >= moved_) show_chain(buckets_[i]);
    if (next_ != nullptr && i <= moved_) {
      const std::uint64_t last = i << (64 - bits_) | ~std::uint64_t{0} >> bits_;
      for (std::uint64_t n = next_index(i << (64 - bits_)); n <= next_index(last); ++n)
        show_chain(next_[n]);
    }
    return (i + 1) << (64 - bits_);
  }

  bool inspect(Inspector& inspector) const {
    if (buckets_ == nullptr) return size_ == 0 && next_ == nullptr && bits_ == kFirstBits;
    if (!has_sound_sizes() || !inspector.node(buckets_, array_bytes(bits_))) return false;
    std::uint64_t pairs = 0;
    for (std::uint64_t i = moved_; i < array_size(bits_); ++i) {
      const auto belongs = [&](const Node& node) { return node.hash >> (64 - bits_) == i; };
      if (!inspect_chain(inspector, buckets_[i], belongs, pairs)) return false;
    }
    return (next_ == nullptr || inspect_next(inspector, pairs)) && pairs == size_;
  }

  void renew_locks() { new (&lock_) util::SpinningSharedMutex; }

  /// A node; the first one has an array made, and larger ones are done without.
  static constexpr PutTakes put_takes() {
    return {{{sizeof(Node), 1}, {array_bytes(kFirstBits), 1}}};
  }

 private:
  struct Node {
    Node* next;
    std::uint64_t hash;
    Word key;
    Word value;
  };

  static constexpr unsigned kFirstBits = 3, kMaxBits = 40;
  static constexpr unsigned kAtOnce = 16;      // nodes or empty buckets that a write moves
  static constexpr std::uint64_t kSparse = 4;  // buckets for a pair

  static constexpr std::uint64_t array_size(std::uint64_t bits) { return std::uint64_t{1} << bits; }
  static constexpr std::size_t array_bytes(std::uint64_t bits) {
    return array_size(bits) * sizeof(Node*);
  }

  static Node** new_array(std::uint64_t bits) {
    auto* const array = static_cast<Node**>(Memory::allocate(array_bytes(bits)));
    std::memset(array, 0, array_bytes(bits));
    return array;
  }

  /// Each change of what others can see.
  template <class T>
  static void set(T& place, std::type_identity_t<T> value) {
    Memory::add(&place, sizeof place);
    place = value;
  }

  bool has_sound_sizes() const {
    const bool sound = bits_ >= kFirstBits && bits_ <= kMaxBits && moved_ < array_size(bits_);
    if (!sound || next_ == nullptr) return sound && moved_ == 0;
    return next_bits_ >= kFirstBits && (next_bits_ == bits_ + 1 || next_bits_ + 1 == bits_);
  }

  template <class Trust>
  bool are_readable(const Trust& trust) const {
    if constexpr (!Trust::kDoubts) return true;
    return has_sound_sizes() && trust.holds(buckets_, array_bytes(bits_)) &&
           (next_ == nullptr || trust.holds(next_, array_bytes(next_bits_)));
  }

  std::uint64_t next_index(std::uint64_t hash) const { return hash >> (64 - next_bits_); }

  /// The first nodes of the chains where a hash may be.
  std::array<Node*, 2> chains_of(std::uint64_t hash) const {
    const std::uint64_t i = hash >> (64 - bits_);
    return {i >= moved_ ? buckets_[i] : nullptr,
            next_ != nullptr && i <= moved_ ? next_[next_index(hash)] : nullptr};
  }

  static Node** find_in_chain(Node** link, std::uint64_t hash, Word key) {
    while (*link != nullptr && !((*link)->hash == hash && Keys::equal((*link)->key, key)))
      link = &(*link)->next;
    return link;
  }

  /// The link to the key's node; to null if it has none.
  Node*& find_link(std::uint64_t hash, Word key) const {
    const std::uint64_t i = hash >> (64 - bits_);
    if (i >= moved_) {
      Node** const link = find_in_chain(&buckets_[i], hash, key);
      if (*link != nullptr || next_ == nullptr || i > moved_) return *link;
    }
    return *find_in_chain(&next_[next_index(hash)], hash, key);
  }

  /// Now and then: there may be no memory, and nodes move with writes only.
  void try_resize(std::uint64_t bits) {
    if (next_ != nullptr || bits > kMaxBits || size_ % array_size(bits_ - kFirstBits) > 1) return;
    try {
      Node** const array = new_array(bits);
      set(next_, array);
      set(next_bits_, bits);
    } catch (const std::exception&) {  // it stays as large as it is
    }
  }

  /// A table without pairs has no arrays.
  void clear() {
    release(buckets_);
    if (next_ != nullptr) release(next_);
    set(moved_, 0);
    set(bits_, kFirstBits);
  }

  static void release(Node**& array) {
    Memory::free(array);
    set(array, nullptr);
  }

  void move_some() {
    for (unsigned i = 0; i < kAtOnce && next_ != nullptr; ++i) move_one();
  }

  void move_one() {
    if (Node* const node = buckets_[moved_]) {
      Node*& to = next_[next_index(node->hash)];
      set(buckets_[moved_], node->next);
      set(node->next, to);
      set(to, node);
      return;
    }
    set(moved_, moved_ + 1);
    if (moved_ < array_size(bits_)) return;
    release(buckets_);
    set(buckets_, next_);
    set(bits_, next_bits_);
    set(next_, nullptr);
    set(moved_, 0);
  }

  /// The array that nodes are being moved to: it has none of the buckets that come next.
  bool inspect_next(Inspector& inspector, std::uint64_t& pairs) const {
    if (!inspector.node(next_, array_bytes(next_bits_))) return false;
    for (std::uint64_t i = 0; i < array_size(next_bits_); ++i) {
      const auto belongs = [&](const Node& node) {
        return next_index(node.hash) == i && node.hash >> (64 - bits_) <= moved_;
      };
      if (!inspect_chain(inspector, next_[i], belongs, pairs)) return false;
    }
    return true;
  }

  template <class Belongs>
  static bool inspect_chain(Inspector& inspector, const Node* node, Belongs belongs,
                            std::uint64_t& pairs) {
    for (; node != nullptr; node = node->next, ++pairs) {
      if (!inspector.node(node, sizeof(Node)) || !belongs(*node)) return false;
      if (!inspector.pair(node->key, node->value) || Keys::hash(node->key) != node->hash)
        return false;
    }
    return true;
  }

  mutable util::SpinningSharedMutex lock_;  // guards what follows
  Node** buckets_ = nullptr;
  Node** next_ = nullptr;  // null: no pairs are being moved
  std::uint64_t moved_ =
      0;  // buckets of which all pairs are in next_; the one behind is on the way
  std::uint64_t bits_ = kFirstBits;
  std::uint64_t next_bits_ = 0;  // of next_
  std::uint64_t size_ = 0;
};

}  // namespace perdix::detail::index::tips
