// The nodes of the adaptive radix tree (V. Leis et al., "The Adaptive Radix Tree", 2013): four
// sizes, for 4, 16, 48 and 256 children; and for keys that don't end in nodes a fifth one, for two
// children and no prefix. Most nodes above random numbers are such, and two of them are a line.
//
// Invariants, whenever the lock is free:
//   1. A node has at least two entries; the value of a key that ends in the node is one.
//   2. Node2, Node4 and Node16: keys[0, count) ascend strictly, child i belongs to keys[i], and
//      slots from count on are null.
//   3. Node48: index[b] is 0, or 1 + the place of b's child. Node48 and Node256: `present` has
//      exactly the bytes with a child.
//   4. The least byte in a child's reference is that of the keys below the child.
// And at every moment:
//   5. A slot holds null, or a reference to what is part of the tree, or was while this reader's
//      Guard lived: so a reader may follow what it read before it validates.
//
// All fields are atomics: a reader reads them while a writer stores, and validates the lock's
// version afterwards. A node that needs another size is replaced by a new one.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "art/byte_set.h"
#include "art/key.h"
#include "art/prefix.h"
#include "art/ref.h"
#include "epoch/version_lock.h"

namespace perdix::detail::art {

/// The number of children (without that of a key's end) and the length of the prefix, read and
/// written together. Aligned, since clang calls a library for an atomic that it does not know to
/// be.
struct alignas(4) Shape {
  std::uint16_t count = 0;
  std::uint16_t prefix_length = 0;
};

/// The slot for a key that ends in this node, which only keys of varying length need.
template <bool kMayEnd>
struct EndSlot {
  Ref end() const noexcept { return {}; }
};

template <>
struct EndSlot<true> {
  Ref end() const noexcept { return slot.load(); }
  Slot slot;
};

template <class Key>
struct Header : EndSlot<KeyTraits<Key>::kMayEnd> {
  using KeyType = Key;
  static constexpr bool kMayEnd = KeyTraits<Key>::kMayEnd;
  static constexpr std::size_t kAlignment = kMayEnd ? 16 : 64;  // integers: Node4 is a cache line
  static constexpr bool kHasNode2 = !kMayEnd;

  Shape shape() const noexcept { return shape_.load(std::memory_order_relaxed); }

  Prefix<Key> prefix() const noexcept {
    std::array<std::uint64_t, Prefix<Key>::kWords> words;
    for (unsigned i = 0; i < words.size(); ++i)
      words[i] = prefix_[i].load(std::memory_order_relaxed);
    return {words, shape().prefix_length};
  }

  // The calls below are for the holder of the lock, and for a thread that builds a node which no
  // other thread knows yet.

  void set_count(unsigned count) noexcept {
    shape_.store({static_cast<std::uint16_t>(count), shape().prefix_length},
                 std::memory_order_relaxed);
  }

  void set_prefix(const Prefix<Key>& prefix) noexcept {
    for (unsigned i = 0; i < prefix_.size(); ++i)
      prefix_[i].store(prefix.word(i), std::memory_order_relaxed);
    shape_.store({shape().count, static_cast<std::uint16_t>(prefix.length())},
                 std::memory_order_relaxed);
  }

  /// A list of nodes while the tree is taken apart; takes the place of the prefix.
  void set_link(Ref ref) noexcept { prefix_[0].store(ref.word(), std::memory_order_relaxed); }
  Ref link() const noexcept { return Ref::from_word(prefix_[0].load(std::memory_order_relaxed)); }

  using Lock = epoch::SmallVersionLock;
  mutable Lock lock;

 protected:
  /// Of the prefix, for nodes that never have one.
  std::atomic<std::uint64_t>& first_prefix_word() noexcept { return prefix_[0]; }
  const std::atomic<std::uint64_t>& first_prefix_word() const noexcept { return prefix_[0]; }

 private:
  std::atomic<Shape> shape_{Shape{}};
  std::array<std::atomic<std::uint64_t>, Prefix<Key>::kWords> prefix_{};
};

/// Node4 and Node16: children in the order of their bytes.
template <class Key, unsigned kSlots>
struct alignas(Header<Key>::kAlignment) SortedNode : Header<Key> {
  static constexpr Kind kKind = kSlots == 4 ? Kind::node4 : Kind::node16;
  static constexpr unsigned kCapacity = kSlots;
  static constexpr unsigned kKeyWords = (kSlots + 7) / 8;

  /// Byte i of the words, in memory order, belongs to child i.
  std::atomic<std::uint64_t>& key_word(unsigned i) noexcept { return keys_[i]; }
  const std::atomic<std::uint64_t>& key_word(unsigned i) const noexcept { return keys_[i]; }

 private:
  std::array<std::atomic<std::uint64_t>, kKeyWords> keys_{};

 public:
  std::array<Slot, kSlots> children{};
};

/// Node2: the bytes are where others have their prefix.
template <class Key>
struct alignas(32) SortedNode<Key, 2> : Header<Key> {
  static_assert(Header<Key>::kHasNode2);
  static constexpr Kind kKind = Kind::node2;
  static constexpr unsigned kCapacity = 2;
  static constexpr unsigned kKeyWords = 1;

  std::atomic<std::uint64_t>& key_word(unsigned) noexcept { return this->first_prefix_word(); }
  const std::atomic<std::uint64_t>& key_word(unsigned) const noexcept {
    return this->first_prefix_word();
  }

  Prefix<Key> prefix() const noexcept { return {}; }
  void set_prefix([[maybe_unused]] const Prefix<Key>& prefix) noexcept {
    assert(prefix.length() == 0);
  }

  std::array<Slot, 2> children{};
};

template <class Key>
struct alignas(Header<Key>::kAlignment) Node48 : Header<Key> {
  static constexpr Kind kKind = Kind::node48;
  static constexpr unsigned kCapacity = 48;

  ByteSet present;
  std::array<std::atomic<std::uint8_t>, 256> index{};
  std::array<Slot, kCapacity> children{};
};

template <class Key>
struct alignas(Header<Key>::kAlignment) Node256 : Header<Key> {
  static constexpr Kind kKind = Kind::node256;
  static constexpr unsigned kCapacity = 256;

  ByteSet present;
  std::array<Slot, kCapacity> children{};
};

template <class Key>
using Node2 = SortedNode<Key, 2>;
template <class Key>
using Node4 = SortedNode<Key, 4>;
template <class Key>
using Node16 = SortedNode<Key, 16>;

static_assert(sizeof(Node2<std::uint64_t>) == 32);
static_assert(sizeof(Node4<std::uint64_t>) == 64);
static_assert(sizeof(Node16<std::uint64_t>) == 192);
static_assert(sizeof(Node256<std::uint64_t>) == 2112);
static_assert(std::atomic<Shape>::is_always_lock_free);

/// Calls f with the node that ref refers to, as its own type.
template <class Key, class F>
[[gnu::always_inline]] inline decltype(auto) visit(Ref ref, F&& f) {
  const Kind kind = ref.kind();
  if (kind == Kind::node256) return f(*ref.node<Node256<Key>>());
  if constexpr (Header<Key>::kHasNode2) {
    if (kind == Kind::node2) return f(*ref.node<Node2<Key>>());
  }
  if (kind == Kind::node4) return f(*ref.node<Node4<Key>>());
  if (kind == Kind::node16) return f(*ref.node<Node16<Key>>());
  return f(*ref.node<Node48<Key>>());
}

}  // namespace perdix::detail::art
