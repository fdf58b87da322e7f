// What the skip list keeps in PM: a node for each pair, with a tower of links (Pugh, "Skip Lists: A
// Probabilistic Alternative to Balanced Trees", CACM 1990).
//
// Invariants, which check.h verifies and recovery relies on. They hold at every crash point once
// the allocator's records have been resolved (docs/durability/skiplist.md):
//   L1. The index's root word is the offset of the head, a node without a pair. It is the first of
//       all levels, and has kMaxHeight of them.
//   L2. Level 0 decides which pairs there are. Its links lead through all nodes in strictly
//       ascending order of their keys; the last one's is 0.
//   L3. The links of a higher level lead through some of the nodes of the level below, in the same
//       order. So a node is in all levels below one that it is in.
//   L4. A node has as many links as its height says. It may be in fewer levels: a crash has kept it
//       from the others, or it was about to be erased. Links above the levels that it is in mean
//       nothing.
//   L5. The link of level 0 of a node that is in level 0 is not marked.
//   L6. The head, the nodes, and the strings of keys and values are one allocated block each,
//       reached in one way on level 0.
//   L7. A node that is hollow has no pair: its key was erased. It stays as the first of its range
//       (buffers.h), or was about to go when a crash came. Only lists with a log have such nodes.
//   L8. A chain of the log belongs to the head or to a node of level kTall - 1, by its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::detail::index::skiplist {

inline constexpr unsigned kMaxHeight = 21;

/// A node's first word. height (8 bits) | hollow << 8 | magic << 16.
struct Meta {
  bool head = false;
  bool hollow = false;  ///< L7; the head: the list is being dropped, and what its log had is gone
  unsigned height = 1;  ///< its links; 1 to kMaxHeight; constant

  static constexpr std::uint64_t kNodeMagic = 0x3145'444f'4e53;  // "SNODE1"
  static constexpr std::uint64_t kHeadMagic = 0x3144'4145'4853;  // "SHEAD1"

  constexpr std::uint64_t pack() const noexcept {
    return (head ? kHeadMagic : kNodeMagic) << 16 | std::uint64_t{hollow} << 8 | height;
  }
  static constexpr Meta unpack(std::uint64_t word) noexcept {
    return {word >> 16 == kHeadMagic, (word >> 8 & 1) != 0, static_cast<unsigned>(word & 0xff)};
  }
  /// Whether `word` is one that pack() gives.
  static constexpr bool valid(std::uint64_t word) noexcept {
    const Meta meta = unpack(word);
    return meta.pack() == word && meta.height >= 1 && meta.height <= kMaxHeight;
  }
};

/// A link: the offset of the next node on its level, 0 if there is none. That of level 0 is marked
/// when the erase of its node is durable: it then leads to the former successor of the node.
struct Link {
  pm::Offset node = pm::kNull;
  bool erased = false;

  constexpr std::uint64_t pack() const noexcept { return node | (erased ? 1 : 0); }
  static constexpr Link unpack(std::uint64_t word) noexcept {
    return {word & ~std::uint64_t{1}, (word & 1) != 0};
  }
};

/// Links of higher levels follow. `value` and the links are changed by the holder of the node's
/// latch, each by one store.
struct Node {
  std::uint64_t meta;   ///< Meta; the commit word of erasing a node that becomes hollow
  std::uint64_t key;    ///< a word (index/common/codec.h); constant; 0 in the head
  std::uint64_t value;  ///< a word; the commit word of an update. Of the head: see log_of()
  std::uint64_t first;  ///< the Link of level 0; the commit word of inserting and erasing the next
};

/// The offset of the log of write buffers, which the head has in place of a value; 0: the list
/// never had any. The commit word of its creation.
inline std::uint64_t& log_of(Node& head) { return head.value; }

/// Bytes of a node's block. One of height 1 lies in half a line, the others in whole lines.
constexpr std::uint64_t node_bytes(unsigned height) noexcept {
  const std::uint64_t used = offsetof(Node, first) + height * sizeof(std::uint64_t);
  return height == 1 ? used : (used + pm::kLineSize - 1) / pm::kLineSize * pm::kLineSize;
}

/// Of the offset of a node; that of the others is divisible by a line.
inline constexpr std::uint64_t kNodeAlignment = 32;

static_assert(std::is_trivially_copyable_v<Node> && std::has_unique_object_representations_v<Node>);
static_assert(sizeof(Meta) == 8, "unpacked, in DRAM");
static_assert(sizeof(Link) == 16, "unpacked, in DRAM");
static_assert(sizeof(Node) == 32 && offsetof(Node, key) == 8 && offsetof(Node, value) == 16);
static_assert(offsetof(Node, first) == 24);
static_assert(node_bytes(1) == 32 && node_bytes(2) == 64 && node_bytes(5) == 64);
static_assert(node_bytes(6) == 128 && node_bytes(kMaxHeight) == 192);

}  // namespace perdix::detail::index::skiplist
