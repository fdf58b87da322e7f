// A node's fields, and how high the nodes are. Pure functions. The holder of a node's latch changes
// it; other threads validate what they read, or read what is constant (layout.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "index/skiplist/layout.h"
#include "pm/access.h"
#include "pool/checked.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::skiplist {

/// The word of a link; level < height_of(node).
inline std::uint64_t& link_word(Node& node, unsigned level) { return *(&node.first + level); }
inline const std::uint64_t& link_word(const Node& node, unsigned level) {
  return *(&node.first + level);
}

inline Link load_link(const Node& node, unsigned level) {
  return Link::unpack(pm::load(link_word(node, level)));
}

inline unsigned height_of(const Node& node) { return Meta::unpack(pm::load(node.meta)).height; }

/// Whether the node has no pair any more (L7).
inline bool is_hollow(const Node& node) { return Meta::unpack(pm::load(node.meta)).hollow; }

/// Whether the node's erase is durable.
inline bool is_erased(const Node& node) { return load_link(node, 0).erased; }

/// The node at an offset that was read from PM, with a link of that level. Throws corrupt if none
/// is there.
inline Node& checked_node(const pool::PoolCore& pool, pm::Offset offset, unsigned level,
                          bool head = false) {
  const auto valid = [&](const Node& node) {
    const std::uint64_t word = pm::load(node.meta);
    const Meta meta = Meta::unpack(word);
    return Meta::valid(word) && meta.head == head && meta.height > level &&
           pool.contains(offset, node_bytes(meta.height));
  };
  return pool::checked<Node>(pool, offset, "a node", valid, kNodeAlignment);
}

/// The head at an offset. Throws corrupt.
inline Node& checked_head(const pool::PoolCore& pool, pm::Offset offset) {
  return checked_node(pool, offset, kMaxHeight - 1, true);
}

/// The height of the node of a key with this hash. One node in four has a second level, one in four
/// of these a third, and so on: each level takes two bits of the hash. So a key that is inserted
/// again gets the same height. The hash has a seed that each opening draws: a caller cannot choose
/// keys whose nodes are all low, among which a search would go from node to node.
inline unsigned height_of_hash(std::uint64_t hash) {
  constexpr unsigned kBitsPerLevel = 2;
  const unsigned zeros = static_cast<unsigned>(std::countl_zero(hash));
  return std::min(1 + zeros / kBitsPerLevel, kMaxHeight);
}

/// Nodes of this height or more are tall: they own ranges, and the path cache leads to them (Zhao
/// et al. 2024, section 3.3).
inline constexpr unsigned kTall = 3;

/// How many levels of a list have a node, besides the head.
inline unsigned levels_in_use(const Node& head) {
  unsigned levels = kMaxHeight;
  while (levels > 0 && load_link(head, levels - 1).node == pm::kNull) --levels;
  return levels;
}

}  // namespace perdix::detail::index::skiplist
