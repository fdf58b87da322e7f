// What FAST&FAIR keeps in PM: a B+-tree of nodes of 512 bytes, sorted, with a link to the right
// neighbour on each level (Hwang et al., FAST 2018).
//
// Invariants, which check.h verifies and recovery relies on. They hold at every crash point once
// the allocator's recyclable log has been resolved (docs/durability/fastfair.md):
//   F1. The root word is the offset of a node: that of the index, or if this leads to a head, that
//       of the head. The node is the first of its level, and its low bound is the word 0, as is
//       that of the first node of every level.
//   F2. `next` links the nodes of one level in strictly ascending order of `low`; the last one's is
//       0. A node's range begins at its `low` and ends where its successor's begins.
//   F3. The keys of entries [0, count) lie in the node's range and do not descend. An entry whose
//       key equals that of the next one means nothing; the others count. (So an entry can be
//       copied, and a copy taken away, by single stores of eight bytes. The paper tells the copy by
//       equal *pointers*, for which no two values may be equal.)
//   F4. Inner nodes: `leftmost` and the values of the entries that count are offsets of nodes one
//       level below. `leftmost` has the node's own `low`, and an entry's child has the entry's key
//       as its `low`: the same word, so that a string's blob is shared, and belongs to the leaf. No
//       child has two of them.
//   F5. Each level is reached from the one above, or by `next` from a node that is: a node may have
//       no entry above it (a crash came between a split and the entry), and no entry leads to a
//       node that is not in its level's list.
//   F6. The head, every node, every blob of a leaf's low bound and of the keys and values that
//       count in leaves is one allocated block, with one owner.
//   F7. The numbers of leaves that have one differ, are at most `numbers` of the head, and never
//       come back. (They own chains in the log of write buffers: buffers.h.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::detail::index::fastfair {

inline constexpr std::uint64_t kNodeAlignment = 64;  ///< of its offset; no entry straddles a line
inline constexpr unsigned kCapacity = 30;            ///< entries of a node

/// A key and a value or child, as words (index/common/codec.h). Changed by its node's lock holder,
/// word by word, in the order that shift.h gives.
struct Entry {
  std::uint64_t key;
  std::uint64_t value;
};

/// A node's first word. One store changes all of it. count (8 bits) | level << 8 | magic << 16.
struct Meta {
  unsigned count = 0;  ///< F3
  unsigned level = 0;  ///< 0: leaf; constant

  static constexpr std::uint64_t kMagic = 0x3145'444f'4e46;  // "FNODE1"

  constexpr std::uint64_t pack() const noexcept {
    return kMagic << 16 | std::uint64_t{level} << 8 | count;
  }
  static constexpr Meta unpack(std::uint64_t word) noexcept {
    return {static_cast<unsigned>(word & 0xff), static_cast<unsigned>(word >> 8 & 0xff)};
  }
  /// Whether `word` is one that pack() gives for a node.
  static constexpr bool valid(std::uint64_t word) noexcept {
    const Meta meta = unpack(word);
    return meta.pack() == word && meta.count <= kCapacity;
  }
};

/// All fields are written by the holder of the node's lock only, once the node can be reached.
struct Node {
  std::uint64_t meta;   ///< Meta; the commit word of an insert behind the last entry, and of the
                        ///< erase of the last; by the allocator's redo, part of split and merge
  pm::Offset next;      ///< F2; the commit word of split and merge
  std::uint64_t low;    ///< low bound as the word of a key; constant
  pm::Offset leftmost;  ///< F4; constant. Of a leaf its number: F7, see number_of()
  std::array<Entry, kCapacity> entries;
};

/// A leaf's number; 0: it never had a write buffer, and may still get one. Changed once.
inline std::uint64_t& number_of(Node& leaf) { return leaf.leftmost; }
inline const std::uint64_t& number_of(const Node& leaf) { return leaf.leftmost; }

/// Of an index that has had write buffers: its root word leads here.
struct Head {
  static constexpr std::uint64_t kMagic = 0x0031'4441'4548'4646;  // "FFHEAD1"

  std::uint64_t magic;
  pm::Offset root;                      ///< F1; 0 while the index is being created, or is gone
  pm::Offset log;                       ///< of write buffers; 0: there is none yet
  std::uint64_t numbers;                ///< leaves have had numbers up to it, or may have
  std::array<std::uint64_t, 4> unused;  ///< 0
};

/// In place of a leaf's number, and never durable: it is no part of the tree any more.
inline constexpr std::uint64_t kGone = ~std::uint64_t{0};

static_assert(std::is_trivially_copyable_v<Node> && std::has_unique_object_representations_v<Node>);
static_assert(sizeof(Meta) == 8, "unpacked, in DRAM");
static_assert(sizeof(Entry) == 16 && offsetof(Entry, value) == 8);
static_assert(sizeof(Node) == 512 && sizeof(Node) % kNodeAlignment == 0);
static_assert(offsetof(Node, next) == 8 && offsetof(Node, low) == 16);
static_assert(offsetof(Node, leftmost) == 24 && offsetof(Node, entries) == 32);
static_assert(std::is_trivially_copyable_v<Head> && std::has_unique_object_representations_v<Head>);
static_assert(sizeof(Head) == 64 && !Meta::valid(Head::kMagic),
              "told from a node by its first word");

}  // namespace perdix::detail::index::fastfair
