// Which blocks a tree owns (layout.h, F6), as index/common/owned.h has it: level by level from the
// top, then leaf by leaf the strings of its pairs and the leaf. No other thread changes the tree.
//
// When it is dropped, the root word first leads a level down with each that is gone, and then from
// leaf to leaf. Pairs of a leaf that are only in the log are written to the leaf before. So all
// strings are reached from leaves, and the log is freed after these.
#pragma once

#include <algorithm>
#include <functional>

#include "index/common/owned_log.h"
#include "index/fastfair/nodes.h"
#include "index/fastfair/recovery.h"

namespace perdix::detail::index::fastfair {

/// Tells of the strings of the pairs that a leaf has in a buffer, or of a tree that is being
/// dropped, moves those that it has in the log into the leaf. Empty: there is no log.
using WalkBuffered = std::function<void(Node& leaf)>;

inline Node& node_of_level(const pool::PoolCore& pool, pm::Offset offset, unsigned level) {
  Node& node = checked_node(pool, offset);
  if (meta_of(node).level != level) pool::throw_corrupt(pool, kNode, offset);
  return node;
}

/// Tells of the strings of a leaf's entries, from the last one on.
template <class K>
void walk_pairs(const ValueCodec& values, Node& leaf, Owned& owned) {
  for (unsigned left = meta_of(leaf).count; left > 0; --left) {
    if (is_copy(leaf, left - 1)) continue;
    const Entry entry = load_entry(leaf, left - 1);
    owned.release(pm::set_word(leaf.meta, meta_with(leaf, left - 1)),
                  blobs_of<K>(values, entry.key, entry.value));
  }
}

/// Tells of the inner levels, and returns the first leaf.
inline pm::Offset walk_inner_levels(pool::PoolCore& pool, std::uint64_t& root, Owned& owned) {
  pm::Offset offset = pm::load(root);
  while (offset != pm::kNull) {
    Node& first = checked_node(pool, offset);
    const unsigned level = meta_of(first).level;
    if (level == 0) break;
    walk_list(pool, first.next, kNode, owned, [&](pm::Offset at) {
      return ListStep{pm::load(node_of_level(pool, at, level).next), {at, sizeof(Node), kNode}};
    });
    const pm::Offset below = pm::load(first.leftmost);
    checked_child(pool, first, below);
    owned.release(pm::set_word(root, below), OwnedBlocks(offset, sizeof(Node), kNode));
    offset = below;
  }
  return offset;
}

template <class K>
void walk_nodes(pool::PoolCore& pool, std::uint64_t& root, const ValueCodec& values,
                const WalkBuffered& walk_buffered, Owned& owned) {
  const pm::Offset first = walk_inner_levels(pool, root, owned);
  walk_list(pool, root, first, kNode, owned, [&](pm::Offset at) {
    Node& leaf = node_of_level(pool, at, 0);
    if (owns_blobs<K>(values)) {
      // What a copy refers to would be freed twice.
      if (owned.drops()) remove_copies(pool.pm(), leaf);
      if (walk_buffered) walk_buffered(leaf);
      walk_pairs<K>(values, leaf, owned);
    }
    return ListStep{pm::load(leaf.next),
                    OwnedBlocks(at, sizeof(Node), kNode).add_key<K>(pm::load(leaf.low))};
  });
}

/// Tells of all blocks of the index that a word leads to. Throws corrupt.
template <class K>
void walk(pool::PoolCore& pool, std::uint64_t& word, const ValueCodec& values,
          const WalkBuffered& walk_buffered, Owned& owned) {
  Head* const head = head_at(pool, pm::load(word));
  walk_nodes<K>(pool, head == nullptr ? word : head->root, values, walk_buffered, owned);
  if (head == nullptr) return;
  walk_log(pool, head->log, owned);
  owned.release(pm::set_word(word, pm::kNull),
                OwnedBlocks(pool.offset(head), sizeof(Head), "a head"));
}

/// Moves the pairs of a leaf's chain into the leaf, which has no copies.
template <class K>
void take_from_log(pool::PoolCore& pool, const ValueCodec& values, DroppedLog& log, Node& leaf,
                   Owned& owned) {
  const auto has = [&](Word key) {
    return std::any_of(leaf.entries.begin(), leaf.entries.begin() + meta_of(leaf).count,
                       [&](const Entry& entry) { return pm::load(entry.key) == key; });
  };
  // In no order, which nothing needs any more.
  const auto append = [&](const DroppedLog::Pairs& pairs) {
    const unsigned count = meta_of(leaf).count;
    if (count + pairs.size() > kCapacity)
      pool::throw_corrupt(pool, "the log of a leaf", pool.offset(&leaf));
    unsigned filled = count;
    for (const auto& [key, value] : pairs) store_entry(pool.pm(), leaf, filled++, {key, value});
    pool.pm().flush(leaf.entries.data() + count, pairs.size() * sizeof(Entry));  // fenced below
    pool.pm().fence();  // before they are counted
    pool.pm().publish(leaf.meta, meta_with(leaf, filled));
  };
  log.move_pairs(
      pm::load(number_of(leaf)), has, [&] { walk_pairs<K>(values, leaf, owned); }, append);
}

template <class K>
void destroy(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind) {
  const ValueCodec values(pool, value_kind);
  const Head* const head = head_at(pool, pm::load(word));
  // Once all leaves are gone, only a part of the log may be left.
  const bool logged = owns_blobs<K>(values) && head != nullptr && pm::load(head->root) != pm::kNull;
  DroppedLog log(pool, logged ? pm::load(head->log) : pm::kNull);
  DroppedBlocks owned(pool.allocator());
  walk<K>(
      pool, word, values, [&](Node& leaf) { take_from_log<K>(pool, values, log, leaf, owned); },
      owned);
}

}  // namespace perdix::detail::index::fastfair
