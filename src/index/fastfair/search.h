// The way to a node.
//
//   approach  by the cached path if there is one, or from the root, to a node that holds the
//   target,
//             or to one at its left
//   seek      the node that holds the target
//   lock      an inner node that holds a key, locked
//
// `stray` of these: where they put the first node that they reached by `next`, unless there is one
// already. Such a node may have no entry above it (F5), and a writer that holds no latch gives it
// one: Splitting::install(). Lookups pass null. The caller holds an epoch::Guard.
//
// The cached path (index/common/path_cache.h) leads from a key to its leaf without inner nodes: to
// leaves, by their low bounds. Adding and taking out (P1): a leaf is merged away under the latches
// of its parent, of its left neighbour and of itself, and is rewritten under those of its parent
// and of itself. So a thread that adds it holds one of these. The leaf is taken out before anything
// else changes, and marked as gone before the latches are released. So a thread that got the leaf
// from the path, and then its version, sees the mark.
//
// Every step from node to node takes the next node's version before it validates the one that led
// there, so what was reached is still part of the tree as long as its version is the same. A node
// may have split since its parent was read: `next` leads on, as in a B-link tree. Thread-safe.
#pragma once

#include <memory>
#include <stop_token>

#include "epoch/guard.h"
#include "index/common/path_cache.h"
#include "index/fastfair/nodes.h"

namespace perdix::detail::index::fastfair {

/// Gives the cached path the key of a leaf.
template <class K>
struct LowOf {
  Codec<K> keys;
  View<K> operator()(const Node* leaf) const { return keys.view(pm::load(leaf->low)); }
};

/// Whether a leaf is no part of the tree any more, for threads that have come to it by the path.
inline bool is_gone(const Node& leaf) { return pm::load(number_of(leaf)) == kGone; }

/// Marks a leaf that was taken out of the path, when its place is another's, durably. The mark is
/// not durable: the leaf is free after a crash.
inline void mark_as_gone(const pm::Persister& pm, Node& leaf) { pm.store(number_of(leaf), kGone); }

/// Notes a node that was reached by `next`; null: none was.
inline void note_stray(Node* right, Node** stray) {
  if (stray != nullptr && *stray == nullptr) *stray = right;
}

template <class K>
class Descent {
 public:
  using Key = View<K>;
  using Target = fastfair::Target<K>;
  using Path = PathCache<Node, LowOf<K>>;

  /// As Nodes has it. `path_budget`: what the cached path may take; 0: there is none.
  Descent(pool::PoolCore& pool, std::uint64_t& root, unsigned fanout, unsigned latch_bits,
          std::uint64_t path_budget)
      : nodes_(pool, root, fanout, latch_bits) {
    if (path_budget == 0) return;
    path_ = std::make_unique<Path>(pool.reclaimer(), path_budget, LowOf<K>{nodes_.keys()});
  }

  const Nodes<K>& nodes() const { return nodes_; }
  Path* path() { return path_.get(); }
  const Path* path() const { return path_.get(); }

  /// The root. It was the root when its version was read.
  Seen start() const {
    for (;;) {
      const pm::Offset top = pm::load(nodes_.root_word());
      const Seen seen = nodes_.look(nodes_.at(top));
      if (pm::load(nodes_.root_word()) == top) return seen;
    }
  }

  /// Goes from an inner node to its right neighbour, if the target is there or further on, else to
  /// a child. Returns no node if the inner node has changed in between.
  Seen step(const Seen& at, Target target, Node** stray = nullptr) const {
    const Node& node = *at.node;
    Node* right = nodes_.right_of(node, target);
    const Seen following =
        nodes_.look(right != nullptr ? *right : nodes_.child(node, nodes_.rank(node, target)));
    if (!at.valid()) return {};
    note_stray(right, stray);
    return following;
  }

  /// The node that descend() finds, or one to its right, by the cached path if there is one.
  Seen approach(Target target, unsigned level, Node** stray = nullptr) const {
    if (level == 0 && path_ != nullptr) [[unlikely]]
      return approach_by_path(target, stray);
    return descend(target, level, stray);
  }

  /// As approach(), but goes on to the node whose range holds the target. The range does so as long
  /// as the result is valid.
  Seen seek(Target target, unsigned level, Node** stray = nullptr) const {
    for (;;) {
      Seen at = approach(target, level, stray);
      if (at.node == nullptr) return at;
      for (;;) {
        Node* right = nodes_.right_of(*at.node, target);
        if (right == nullptr) return at;
        const Seen following = nodes_.look(*right);
        if (!at.valid()) break;
        note_stray(right, stray);
        at = following;
      }
    }
  }

  /// Locks the inner node of `level` whose range holds the key. False if the tree is not that high.
  bool lock(Locked& locked, Key key, unsigned level) const {
    for (;;) {
      const Seen seen = seek({key}, level);
      if (seen.node == nullptr) return false;
      if (locked.try_lock(seen)) return true;
    }
  }

  /// A leaf from the path that holds the target or is at the left of the one that does; no node if
  /// the path knows of none that is near enough.
  Seen validated(Node* leaf, Target target) const {
    if (leaf == nullptr) return {};
    const Seen seen = nodes_.look(*leaf);
    if (is_gone(*leaf)) [[unlikely]]
      return {};
    if (!path_->complete() && nodes_.right_of(*leaf, target) != nullptr) return {};
    return seen;
  }

  /// Whether the root is the only node. The path to it is complete at once.
  bool has_one_leaf() const {
    const epoch::Guard guard;
    const Node& top = nodes_.root();
    return meta_of(top).level == 0 && pm::load(top.next) == pm::kNull;
  }

  /// Adds all leaves to the cached path, unless it is told to stop. The caller has no guard.
  void fill_path(const std::stop_token& stop) {
    path_->template fill<K>(stop, [this](K& position) { return fill_some(position); });
  }

 private:
  /// Goes down to a node of `level` that holds the target or is at the left of the one that does.
  /// Its version is from a moment when it was part of the tree. Returns no node if the root is
  /// lower.
  Seen descend(Target target, unsigned level, Node** stray) const {
    Seen at;
    for (;;) {
      if (at.node == nullptr) at = start();
      const unsigned here = meta_of(*at.node).level;
      if (here < level) return {};
      if (here == level) return at;
      at = step(at, target, stray);
    }
  }

  Seen shortcut(Target target) const {
    return validated(path_->before(target.key, target.strictly_below), target);
  }

  /// approach() to a leaf. One that the path does not know is found from the root and remembered.
  /// Apart from approach(), which is smaller and faster without it.
  [[gnu::noinline]] Seen approach_by_path(Target target, Node** stray) const {
    if (const Seen leaf = shortcut(target); leaf.node != nullptr) return leaf;
    add_to_path(descend(target, 0, stray));
    const Seen leaf = shortcut(target);
    return leaf.node != nullptr ? leaf : descend(target, 0, stray);
  }

  /// Adds a leaf to which the inner nodes have led. It is not waited for.
  void add_to_path(const Seen& leaf) const {
    if (!path_->filling() || !leaf.latch->try_upgrade(leaf.version)) return;
    LatchSet latches;
    latches.add_held(*leaf.latch);
    path_->add(*leaf.node);
  }

  /// Adds some leaves from a position on, which goes on. False if there are no more. A leaf that
  /// was seen before it split is followed by one that was added by the thread that has split it.
  bool fill_some(K& position) {
    constexpr unsigned kLeavesAtOnce = 64;
    const epoch::Guard guard;
    Seen leaf = seek({position}, 0);
    for (unsigned i = 0; i < kLeavesAtOnce; ++i) {
      add_to_path(leaf);
      leaf = nodes_.look(*leaf.node);
      if (is_gone(*leaf.node)) return true;  // from the position again
      if (!path_->has(*leaf.node)) return path_->filling();
      Node* const next = nodes_.after(*leaf.node);
      const Seen following = next == nullptr ? Seen{} : nodes_.look(*next);
      if (!leaf.valid()) return true;
      if (next == nullptr) return false;
      position = K(nodes_.low_of(*next));
      leaf = following;
    }
    return true;
  }

  const Nodes<K> nodes_;
  std::unique_ptr<Path> path_;  // null if there is none
};

}  // namespace perdix::detail::index::fastfair
