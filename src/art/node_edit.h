// Changing one node: for the holder of its lock, or while no other thread knows the node.
//
//   set(node, entry, ref)     replaces a child that is there
//   add(node, entry, ref)     adds one that isn't; for a byte, !is_full(node)
//   remove(node, entry)       removes one that is there
//   for_each_child(node, f)   calls f(entry, ref) in key order
//   copy(from, to, but)       children and prefix, into an empty node of any kind with enough room;
//                            without the child for the entry `but`, if that is given
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "art/node.h"
#include "art/node_search.h"
#include "pm/probe.h"

namespace perdix::detail::art {

template <class Node>
bool is_full(const Node& node) noexcept {
  return node.shape().count == Node::kCapacity;
}

/// The number of entries, with that of a key's end.
template <class Node>
unsigned entries(const Node& node) noexcept {
  return node.shape().count + !node.end().is_null();
}

namespace sorted {

template <class Node>
using Bytes = std::array<std::uint8_t, 8 * Node::kKeyWords>;

template <class Node>
Bytes<Node> load_bytes(const Node& node) noexcept {
  Bytes<Node> bytes;
  for (unsigned i = 0; i < Node::kKeyWords; ++i) {
    const std::uint64_t word = node.key_word(i).load(std::memory_order_relaxed);
    std::memcpy(&bytes[8 * i], &word, 8);
  }
  return bytes;
}

template <class Node>
void store_bytes(Node& node, const Bytes<Node>& bytes) noexcept {
  for (unsigned i = 0; i < Node::kKeyWords; ++i) {
    std::uint64_t word;
    std::memcpy(&word, &bytes[8 * i], 8);
    node.key_word(i).store(word, std::memory_order_relaxed);
  }
}

template <class Node>
unsigned place_of(const Node& node, Entry byte) noexcept {
  const unsigned equal = equal_mask(node, byte);
  assert(equal != 0);
  return static_cast<unsigned>(std::countr_zero(equal));
}

}  // namespace sorted

template <class Key, unsigned kSlots>
void set_byte_child(SortedNode<Key, kSlots>& node, Entry byte, Ref ref) noexcept {
  node.children[sorted::place_of(node, byte)].store(ref);
}

template <class Key>
void set_byte_child(Node48<Key>& node, Entry byte, Ref ref) noexcept {
  const unsigned place = node.index[static_cast<unsigned>(byte)].load(std::memory_order_relaxed);
  assert(place != 0);
  node.children[place - 1].store(ref);
}

template <class Key>
void set_byte_child(Node256<Key>& node, Entry byte, Ref ref) noexcept {
  node.children[static_cast<unsigned>(byte)].store(ref);
}

template <class Key, unsigned kSlots>
void add_byte_child(SortedNode<Key, kSlots>& node, Entry byte, Ref ref) noexcept {
  const unsigned count = node.shape().count;
  const unsigned place = sorted::rank(node, byte);
  auto bytes = sorted::load_bytes(node);
  for (unsigned i = count; i > place; --i) {
    bytes[i] = bytes[i - 1];
    node.children[i].store(node.children[i - 1].load());
  }
  bytes[place] = static_cast<std::uint8_t>(byte);
  node.children[place].store(ref);
  pm::on_step("art: children have moved, and not their bytes");
  sorted::store_bytes(node, bytes);
}

template <class Key>
void add_byte_child(Node48<Key>& node, Entry byte, Ref ref) noexcept {
  unsigned place = 0;
  while (!node.children[place].load().is_null()) ++place;
  node.children[place].store(ref);
  node.index[static_cast<unsigned>(byte)].store(static_cast<std::uint8_t>(place + 1),
                                                std::memory_order_relaxed);
  node.present.insert(byte);
}

template <class Key>
void add_byte_child(Node256<Key>& node, Entry byte, Ref ref) noexcept {
  node.children[static_cast<unsigned>(byte)].store(ref);
  node.present.insert(byte);
}

template <class Key, unsigned kSlots>
void remove_byte_child(SortedNode<Key, kSlots>& node, Entry byte) noexcept {
  const unsigned last = node.shape().count - 1u;
  auto bytes = sorted::load_bytes(node);
  for (unsigned i = sorted::place_of(node, byte); i < last; ++i) {
    bytes[i] = bytes[i + 1];
    node.children[i].store(node.children[i + 1].load());
  }
  node.children[last].store({});
  sorted::store_bytes(node, bytes);
}

template <class Key>
void remove_byte_child(Node48<Key>& node, Entry byte) noexcept {
  set_byte_child(node, byte, {});
  node.index[static_cast<unsigned>(byte)].store(0, std::memory_order_relaxed);
  node.present.erase(byte);
}

template <class Key>
void remove_byte_child(Node256<Key>& node, Entry byte) noexcept {
  set_byte_child(node, byte, {});
  node.present.erase(byte);
}

// The same with the slot of the key's end.

template <class Node>
void set_end(Node& node, Ref ref) noexcept {
  if constexpr (Node::kMayEnd) node.slot.store(ref);
}

template <class Node>
void set(Node& node, Entry entry, Ref ref) noexcept {
  if (entry == kEnd) return set_end(node, ref);
  set_byte_child(node, entry, ref);
}

template <class Node>
void add(Node& node, Entry entry, Ref ref) noexcept {
  assert(child(node, entry).is_null());
  if (entry == kEnd) return set_end(node, ref);
  assert(!is_full(node));
  add_byte_child(node, entry, ref);
  node.set_count(node.shape().count + 1u);
}

template <class Node>
void remove(Node& node, Entry entry) noexcept {
  assert(!child(node, entry).is_null());
  if (entry == kEnd) return set_end(node, {});
  remove_byte_child(node, entry);
  node.set_count(node.shape().count - 1u);
}

template <class Key, unsigned kSlots, class F>
void for_each_byte_child(const SortedNode<Key, kSlots>& node, F f) {
  const auto bytes = sorted::load_bytes(node);
  for (unsigned i = 0; i < node.shape().count; ++i) f(Entry{bytes[i]}, node.children[i].load());
}

template <class Node, class F>
void for_each_byte_child(const Node& node, F f) {
  for (Entry byte = node.present.next(0); byte != ByteSet::kNone;
       byte = node.present.next(byte + 1)) {
    f(byte, byte_child(node, byte));
  }
}

template <class Node, class F>
void for_each_child(const Node& node, F f) {
  if (const Ref end = node.end(); !end.is_null()) f(kEnd, end);
  for_each_byte_child(node, f);
}

template <class From, class To>
void copy(const From& from, To& to, Entry but = kBeyond) noexcept {
  to.set_prefix(from.prefix());
  for_each_child(from, [&](Entry entry, Ref ref) {
    if (entry != but) add(to, entry, ref);
  });
}

}  // namespace perdix::detail::art
