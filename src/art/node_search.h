// Looking things up in one node. Pure reads, safe beside a writer; what they return counts once the
// version is validated.
//
//   child(node, entry)       the child for a byte or for the key's end; null if there is none
//   next(node, entry)        the first child at or after the entry, in key order; null if none
//   previous(node, entry)    the last child at or before the entry
//   has_before, has_after    whether there is any strictly before or after the entry
//   floor_in(node, entry, following)   the child below which the greatest key at or before the
//                            entry and the byte that follows it should be
//   ref_to(node)             a reference to it
//
// Entries are kEnd, then the bytes 0 to 255; kBeyond is after all.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "art/node.h"

namespace perdix::detail::art {

inline constexpr Entry kBeyond = 256;

namespace sorted {

/// The node's bytes as a vector; those from count on are meaningless.
template <class Key, unsigned kSlots>
__m128i keys(const SortedNode<Key, kSlots>& node) noexcept {
  // Two relaxed loads rather than one of 16 bytes: each is atomic, so reading beside a writer is
  // defined.
  const auto low = static_cast<long long>(node.key_word(0).load(std::memory_order_relaxed));
  if constexpr (kSlots <= 8)
    return _mm_cvtsi64_si128(low);
  else
    return _mm_set_epi64x(static_cast<long long>(node.key_word(1).load(std::memory_order_relaxed)),
                          low);
}

inline unsigned valid_mask(unsigned count) noexcept { return (1u << count) - 1; }

/// Bit i says that byte i equals.
template <class Node>
unsigned equal_mask(const Node& node, Entry byte) noexcept {
  const __m128i equal = _mm_cmpeq_epi8(keys(node), _mm_set1_epi8(static_cast<char>(byte)));
  return static_cast<unsigned>(_mm_movemask_epi8(equal)) & valid_mask(node.shape().count);
}

/// How many bytes are < limit; limit in [0, 256].
template <class Node>
unsigned rank(const Node& node, Entry limit) noexcept {
  if (limit <= 0) return 0;
  const unsigned valid = valid_mask(node.shape().count);
  const __m128i all = keys(node);
  // a <= b, unsigned, as min(a, b) == a
  const __m128i below =
      _mm_cmpeq_epi8(_mm_min_epu8(all, _mm_set1_epi8(static_cast<char>(limit - 1))), all);
  return static_cast<unsigned>(
      std::popcount(static_cast<unsigned>(_mm_movemask_epi8(below)) & valid));
}

}  // namespace sorted

// The byte children of each layout.

template <class Key, unsigned kSlots>
Ref byte_child(const SortedNode<Key, kSlots>& node, Entry byte) noexcept {
  const unsigned equal = sorted::equal_mask(node, byte);
  return equal != 0 ? node.children[static_cast<unsigned>(std::countr_zero(equal))].load() : Ref{};
}

template <class Key>
Ref byte_child(const Node48<Key>& node, Entry byte) noexcept {
  const unsigned place = node.index[static_cast<unsigned>(byte)].load(std::memory_order_relaxed);
  return place != 0 ? node.children[place - 1].load() : Ref{};
}

template <class Key>
Ref byte_child(const Node256<Key>& node, Entry byte) noexcept {
  return node.children[static_cast<unsigned>(byte)].load();
}

template <class Key, unsigned kSlots>
Ref next_byte_child(const SortedNode<Key, kSlots>& node, Entry from) noexcept {
  const unsigned place = sorted::rank(node, from);
  return place < node.shape().count && place < kSlots ? node.children[place].load() : Ref{};
}

template <class Node>
Ref next_byte_child(const Node& node, Entry from) noexcept {
  const Entry byte = node.present.next(from);
  return byte != ByteSet::kNone ? byte_child(node, byte) : Ref{};
}

template <class Key, unsigned kSlots>
Ref previous_byte_child(const SortedNode<Key, kSlots>& node, Entry from) noexcept {
  const unsigned place = sorted::rank(node, from + 1);
  return place > 0 ? node.children[place - 1].load() : Ref{};
}

template <class Node>
Ref previous_byte_child(const Node& node, Entry from) noexcept {
  const Entry byte = node.present.previous(from);
  return byte != ByteSet::kNone ? byte_child(node, byte) : Ref{};
}

template <class Key, unsigned kSlots>
Entry first_byte(const SortedNode<Key, kSlots>& node) noexcept {
  return static_cast<Entry>(node.key_word(0).load(std::memory_order_relaxed) & 0xff);
}

template <class Node>
Entry first_byte(const Node& node) noexcept {
  return node.present.next(0);
}

template <class Node>
bool has_byte_before(const Node& node, Entry byte) noexcept {
  return node.shape().count > 0 && first_byte(node) < byte;
}

template <class Key, unsigned kSlots>
bool has_byte_after(const SortedNode<Key, kSlots>& node, Entry byte) noexcept {
  return sorted::rank(node, byte + 1) < node.shape().count;
}

template <class Node>
bool has_byte_after(const Node& node, Entry byte) noexcept {
  return node.present.next(byte + 1) != ByteSet::kNone;
}

// Loading ahead: a search waits for memory most of its time.

/// Starts to load what `ref` refers to; of a Node16 all lines, since which of them is needed is
/// known only after the first has come.
inline void prefetch(Ref ref) noexcept {
  const auto* lines = static_cast<const char*>(ref.address());
  __builtin_prefetch(lines);
  if (ref.kind() != Kind::node16) return;
  __builtin_prefetch(lines + 64);
  __builtin_prefetch(lines + 128);
}

// The same with the slot of the key's end, which comes first.

template <class Node>
Ref child(const Node& node, Entry entry) noexcept {
  if constexpr (Node::kMayEnd) {
    if (entry == kEnd) return node.end();
  }
  return byte_child(node, entry);
}

template <class Node>
Ref next(const Node& node, Entry from) noexcept {
  if constexpr (Node::kMayEnd) {
    if (from == kEnd) {
      if (const Ref end = node.end(); !end.is_null()) return end;
    }
  }
  return next_byte_child(node, std::max(from, 0));
}

template <class Node>
Ref previous(const Node& node, Entry from) noexcept {
  if (from != kEnd) {
    const Ref found = previous_byte_child(node, std::min(from, 255));
    if (!found.is_null()) return found;
  }
  return node.end();
}

/// The question of a search for the greatest key below, for one node.
struct Floor {
  Ref ref{};           ///< the last child with a key that seems not to be above; may be null
  bool exact = false;  ///< whether it is the entry's own
};

template <class Key, unsigned kSlots>
Floor floor_in_bytes(const SortedNode<Key, kSlots>& node, Entry byte, Entry following) noexcept {
  const __m128i all = sorted::keys(node);
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(byte));
  const unsigned valid = sorted::valid_mask(node.shape().count);
  const auto in_mask = [&](__m128i found) {
    return static_cast<unsigned>(_mm_movemask_epi8(found)) & valid;
  };
  const auto rank =
      static_cast<unsigned>(std::popcount(in_mask(_mm_cmpeq_epi8(_mm_min_epu8(all, wanted), all))));
  if (rank == 0) return {};
  const Ref last = node.children[rank - 1].load();
  if (in_mask(_mm_cmpeq_epi8(all, wanted)) == 0) return {last};
  if (last.least_byte() <= following) return {last, true};
  return {rank > 1 ? node.children[rank - 2].load() : Ref{}};
}

template <class Node>
Floor floor_in_bytes(const Node& node, Entry byte, Entry following) noexcept {
  const Ref own = byte_child(node, byte);
  if (!own.is_null() && own.least_byte() <= following) return {own, true};
  return {previous_byte_child(node, byte - 1)};
}

template <class Node>
Floor floor_in(const Node& node, Entry entry, Entry following) noexcept {
  const Ref end = node.end();
  if (Node::kMayEnd && entry == kEnd) return {end, !end.is_null()};
  const Floor floor = floor_in_bytes(node, entry, following);
  return floor.ref.is_null() ? Floor{end} : floor;
}

template <class Node>
bool has_before(const Node& node, Entry entry) noexcept {
  return entry != kEnd && (!node.end().is_null() || has_byte_before(node, entry));
}

template <class Node>
bool has_after(const Node& node, Entry entry) noexcept {
  return has_byte_after(node, entry);
}

/// The least byte of keys that have this prefix and then the entry.
template <class Key>
std::uint8_t least_byte(const Prefix<Key>& prefix, Entry entry) noexcept {
  return prefix.length() != 0 ? prefix.byte(0) : static_cast<std::uint8_t>(std::max(entry, 0));
}

/// For callers that know that no thread changes the node. The node has a child.
template <class Node>
Ref ref_to(const Node& node) noexcept {
  const Entry first = node.end().is_null() ? first_byte(node) : kEnd;
  return Ref::of(&node, Node::kKind, least_byte(node.prefix(), first));
}

}  // namespace perdix::detail::art
