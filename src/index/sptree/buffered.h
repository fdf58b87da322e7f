// Hints of where nodes are, and the cleaning of chains, for the sources of the tree.
#pragma once

#include "index/sptree/sptree.h"

namespace perdix::index::sptree {

/// Lets writers know where the node is, if there are buffers: else they wait for two fences, and
/// have time to search meanwhile. If its range changes at the same time, the hint is out of date.
template <class K>
void WordTree<K>::leave_hint(const Node& node) {
  if constexpr (Keys::kInline) {
    if (!buffers_.any()) return;
    hints_.note(node.low, node.high.load(std::memory_order_relaxed), nodes_.ref(&node));
  }
}

/// Gives the hints more room if there are so many nodes by now. Keys are taken to lie about where
/// the bounds of leaves do: but for the first, whose bound is not a key's. No lock is held: it may
/// take milliseconds.
template <class K>
void WordTree<K>::grow_hints() {
  if constexpr (Keys::kInline) {
    if (!buffers_.any()) return;
    const epoch::Guard guard;  // for the table, too: another thread may make a new one
    const auto nodes = static_cast<std::uint64_t>(nodes_.count());
    if (!hints_.growth_due(nodes)) return;
    const Node* second = nodes_.next_of(*top_.head());
    const Node* last = top_.locate_surely(NodeBounds::open());
    if (second == nullptr || last->low < second->low) return;
    try {
      if (!hints_.grow(nodes, second->low, last->low)) return;
    } catch (const std::bad_alloc&) {
      return;  // searches take as long as they did
    }
    for (const Node* node = second; node != nullptr; node = nodes_.next_of(*node))
      leave_hint(*node);
  }
}

template <class K>
bool WordTree<K>::hinted(Key key) const {
  if constexpr (Keys::kInline) {
    const epoch::Guard guard;
    return nodes_.at(hints_.of(key)) == top_.locate(key);
  }
  return false;
}

template <class K>
unsigned WordTree<K>::steps_right(Key key) const {
  const epoch::Guard guard;
  unsigned steps = 0;
  for (Node* node = top_.locate(key);;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      node = top_.locate(key);
    } else if (node->covers(key)) {
      return steps;
    } else {
      node = go_right(node, version, key, steps);
    }
  }
}

/// Merges the buffer of a chain, if it still is what it was. `may_split`: else a leaf that has no
/// room for that is left alone.
template <class K>
void WordTree<K>::clean(wal::Chain& chain, bool may_split) {
  const epoch::Guard guard;
  auto& buffer = static_cast<Buffer&>(chain);
  Node* node = buffer.node.load(std::memory_order_acquire);
  if (node == nullptr) return;
  node->lock.lock();
  const LockedNode locked(node);
  if (node->lock.is_obsolete() || buffers_.of(*node) != &buffer) return;
  if (buffers_.merge(*node)) return buffers_.shed(*node);
  if (may_split) split(*node, NodeBounds::view(node->low));
}

}  // namespace perdix::index::sptree
