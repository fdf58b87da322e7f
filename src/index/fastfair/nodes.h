// The nodes of a tree: what one says of its keys, and which others it leads to. What is read of a
// node counts under its latch, or if the version of its latch, from before, is validated.
//
// Thread-safe: it changes nothing.
#pragma once

#include <algorithm>
#include <cassert>

#include "index/common/buffered.h"
#include "index/common/codec.h"
#include "index/common/latches.h"
#include "index/fastfair/shift.h"
#include "pool/checked.h"

namespace perdix::detail::index::fastfair {

inline constexpr const char* kNode = "a node";

/// The node at an offset that was read from PM. Throws corrupt if none is there.
inline Node& checked_node(const pool::PoolCore& pool, pm::Offset offset) {
  const auto valid = [](const Node& node) { return Meta::valid(pm::load(node.meta)); };
  return pool::checked<Node>(pool, offset, kNode, valid, kNodeAlignment);
}

/// The node at an offset that another one has for a child, which is one level below. Throws
/// corrupt. Always inline: it would cost a search a call on each level.
[[gnu::always_inline]] inline Node& checked_child(const pool::PoolCore& pool, const Node& parent,
                                                  pm::Offset offset) {
  Node& child = checked_node(pool, offset);
  if (meta_of(child).level + 1 != meta_of(parent).level) pool::throw_corrupt(pool, kNode, offset);
  return child;
}

/// The node's right neighbour, or nullptr. It is of the same level and has a greater low bound, so
/// that a damaged list cannot lead round in a circle. Throws corrupt.
template <class K>
Node* right_neighbour(const pool::PoolCore& pool, const Codec<K>& keys, const Node& node) {
  const pm::Offset next = pm::load(node.next);
  if (next == pm::kNull) return nullptr;
  Node& right = checked_node(pool, next);
  const bool behind = meta_of(right).level == meta_of(node).level &&
                      keys.view(pm::load(node.low)) < keys.view(pm::load(right.low));
  if (!behind) pool::throw_corrupt(pool, kNode, next);
  return &right;
}

/// A node with its latch's version, from before anything was read of it.
struct Seen {
  Node* node = nullptr;
  Latch* latch = nullptr;
  std::uint64_t version = 0;

  bool valid() const { return latch->read_validate(version); }
};

/// A node whose latch is held.
using Locked = LockedHome<Seen>;

/// The target of a search: the last key that is at or below `key`, or only below it.
template <class K>
struct Target {
  View<K> key;
  bool strictly_below = false;

  bool reaches(View<K> other) const { return strictly_below ? other < key : !(key < other); }
};

template <class K>
class Nodes {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;
  using Target = fastfair::Target<K>;

  /// The nodes below a word of the pool. `fanout`: entries with which one is full, 4 to kCapacity.
  /// 2^latch_bits latches, of a line each.
  Nodes(pool::PoolCore& pool, std::uint64_t& root, unsigned fanout, unsigned latch_bits)
      : pool_(pool), root_(root), fanout_(fanout), keys_(pool), latches_(latch_bits) {
    assert(fanout >= 4 && fanout <= kCapacity);
  }

  pool::PoolCore& pool() const { return pool_; }
  const pm::Persister& pm() const { return pool_.pm(); }
  const Keys& keys() const { return keys_; }
  const Latches& latches() const { return latches_; }
  unsigned fanout() const { return fanout_; }
  std::uint64_t& root_word() const { return root_; }

  Node& at(pm::Offset offset) const { return checked_node(pool_, offset); }
  Node& root() const { return at(pm::load(root_)); }
  pm::Offset offset(const Node& node) const { return pool_.offset(&node); }
  Latch& latch_of(const Node& node) const { return latches_.of(offset(node)); }

  Seen look(Node& node) const {
    Latch& latch = latch_of(node);
    return {&node, &latch, latch.read_begin()};
  }
  /// A node whose latch is held already.
  Seen held(Node& node) const { return {&node, &latch_of(node)}; }

  Key view(Word key) const { return keys_.view(key); }
  Key low_of(const Node& node) const { return view(pm::load(node.low)); }
  Key key_at(const Node& node, unsigned i) const { return view(pm::load(node.entries[i].key)); }

  /// Asks for all lines of the node at an offset. Harmless for any offset.
  void prefetch(pm::Offset offset) const {
    if (!pool_.contains(offset, sizeof(Node))) return;
    for (std::size_t line = 0; line < sizeof(Node); line += pm::kLineSize)
      __builtin_prefetch(pool_.template at<char>(offset + line));
  }

  /// How many of the node's entries, from the first one on, the target reaches. Of equal neighbours
  /// it reaches both or none, so the last one that it reaches is one that counts (F3).
  unsigned rank(const Node& node, Target target) const {
    const unsigned count = meta_of(node).count;
    const auto reaches = [&](const Entry& entry) {
      return target.reaches(view(pm::load(entry.key)));
    };
    const auto begin = node.entries.begin(), end = begin + count;
    if constexpr (Keys::kInline) {
      // From the left, as in the paper: the next line is on its way while one is searched.
      return static_cast<unsigned>(std::find_if_not(begin, end, reaches) - begin);
    } else {
      // Each key that is compared lies in a separate blob.
      return static_cast<unsigned>(std::partition_point(begin, end, reaches) - begin);
    }
  }

  /// Like rank(), for a writer, which will move the entries at the right: so it reads only these.
  unsigned rank_from_right(const Node& node, Target target) const {
    if constexpr (!Keys::kInline) return rank(node, target);
    unsigned after = meta_of(node).count;
    while (after > 0 && !target.reaches(key_at(node, after - 1))) --after;
    return after;
  }

  /// Whether the last entry that is reached has the very key.
  bool holds(const Node& node, unsigned rank, Key key, Hash16 hash) const {
    return rank > 0 && keys_.equal(pm::load(node.entries[rank - 1].key), key, hash);
  }

  /// The child to which a target of that rank leads. Always inline, as checked_child().
  [[gnu::always_inline]] Node& child(const Node& node, unsigned rank) const {
    return checked_child(pool_, node,
                         pm::load(rank == 0 ? node.leftmost : node.entries[rank - 1].value));
  }

  /// The node's right neighbour, or nullptr.
  Node* after(const Node& node) const { return right_neighbour<K>(pool_, keys_, node); }

  /// The node's right neighbour if the target lies at or behind its low bound, else nullptr.
  Node* right_of(const Node& node, Target target) const {
    const pm::Offset next = pm::load(node.next);
    if (next == pm::kNull || !target.reaches(low_of(at(next)))) return nullptr;
    return after(node);
  }

  /// Calls visit(node) for all nodes, level by level from the top, each level from the left.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Node* first = &root();; first = &child(*first, 0)) {
      for (Node* node = first; node != nullptr; node = after(*node)) visit(*node);
      if (meta_of(*first).level == 0) return;
    }
  }

 private:
  pool::PoolCore& pool_;
  std::uint64_t& root_;
  const unsigned fanout_;
  const Keys keys_;
  const Latches latches_;
};

}  // namespace perdix::detail::index::fastfair
