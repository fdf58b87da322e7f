// The way to a node, and point lookups: get, contains, find_floor, find_below.
//
//   descend   from the root to a node that holds the target, or to one at its left
//   approach  the same, by the cached path if there is one
//   seek      the node that holds the target
//   lock_node the same, locked
//
// `stray` of these: where they put the first node that they reached by `next`, unless there is one
// already. Such a node may have no entry above it (F5), and a writer that holds no latch gives it
// one: install(). Lookups pass null. The caller holds an epoch::Guard.
#pragma once

#include <algorithm>

#include "index/fastfair/fastfair.h"
#include "index/fastfair/shift.h"

namespace perdix::detail::index::fastfair {

/// Notes a node that was reached by `next`; null: none was.
inline void note_stray(Node* right, Node** stray) {
  if (stray != nullptr && *stray == nullptr) *stray = right;
}

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

/// The root. It was the root when its version was read.
template <class K>
auto WordTree<K>::start() const -> Seen {
  for (;;) {
    const pm::Offset top = pm::load(root_);
    const Seen seen = look(node_at(top));
    if (pm::load(root_) == top) return seen;
  }
}

/// Goes from an inner node to its right neighbour, if the target is there or further on, else to a
/// child. Returns no node if the inner node has changed in between.
template <class K>
auto WordTree<K>::step(const Seen& at, Target target, Node** stray) const -> Seen {
  Node* right = right_of(*at.node, target);
  const Seen following = look(right != nullptr ? *right : child(*at.node, rank(*at.node, target)));
  if (!at.valid()) return {};
  note_stray(right, stray);
  return following;
}

/// Goes down to a node of `level` that holds the target or is at the left of the one that does. Its
/// version is from a moment when it was part of the tree. Returns no node if the root is lower.
template <class K>
auto WordTree<K>::descend(Target target, unsigned level, Node** stray) const -> Seen {
  Seen at;
  for (;;) {
    if (at.node == nullptr) at = start();
    const unsigned here = meta_of(*at.node).level;
    if (here < level) return {};
    if (here == level) return at;
    at = step(at, target, stray);
  }
}

/// The node that descend() finds, or one to its right, by the cached path if there is one.
template <class K>
auto WordTree<K>::approach(Target target, unsigned level, Node** stray) const -> Seen {
  if (level == 0 && path_ != nullptr) [[unlikely]]
    return approach_by_path(target, stray);
  return descend(target, level, stray);
}

/// As approach(), but goes on to the node whose range holds the target. The range does so as long
/// as the result is valid.
template <class K>
auto WordTree<K>::seek(Target target, unsigned level, Node** stray) const -> Seen {
  for (;;) {
    Seen at = approach(target, level, stray);
    if (at.node == nullptr) return at;
    for (;;) {
      Node* right = right_of(*at.node, target);
      if (right == nullptr) return at;
      const Seen following = look(*right);
      if (!at.valid()) break;
      note_stray(right, stray);
      at = following;
    }
  }
}

/// Locks the node of `level` whose range holds the key. False if the tree is not that high.
template <class K>
bool WordTree<K>::lock_node(Locked& locked, Key key, unsigned level, Node** stray) const {
  for (;;) {
    const Seen seen = seek({key}, level, stray);
    if (seen.node == nullptr) return false;
    if (level == 0 && !ready(seen)) continue;
    if (locked.try_lock(seen)) return true;
  }
}

/// The value's word of a key. `leaf` is from approach(), or no node. Reads the right neighbour only
/// if the leaf does not have the key. `kBuffered`: leaves may have buffers.
template <class K>
template <bool kBuffered>
std::optional<Word> WordTree<K>::find_among(Seen leaf, Key key) const {
  const Hash16 hash = Keys::hash16(key);
  for (;;) {
    if (leaf.node == nullptr) leaf = approach({key}, 0);
    if constexpr (kBuffered) {  // first: it costs no line of PM
      std::optional<Word> value;
      const bool counts = look_into_buffer(leaf, key, value);
      if (counts && value) return value;
      if (!counts) {
        leaf = {};
        continue;
      }
    }
    const unsigned after = rank(*leaf.node, {key});
    if (holds(*leaf.node, after, key, hash)) {
      const Word value = pm::load(leaf.node->entries[after - 1].value);
      if (leaf.valid()) return value;
      leaf = {};
      continue;
    }
    Node* right = right_of(*leaf.node, {key});
    const Seen following = right == nullptr ? Seen{} : look(*right);
    const bool valid = leaf.valid();
    if (valid && right == nullptr) return std::nullopt;
    leaf = valid ? following : Seen{};
  }
}

template <class K>
std::optional<Word> WordTree<K>::find_from(Seen leaf, Key key) const {
  return buffers_ == nullptr ? find_among<false>(leaf, key) : find_among<true>(leaf, key);
}

/// The last pairs of leaf and buffer with keys that the target reaches.
template <class K>
void WordTree<K>::collect_last(const Node& leaf, Target target, LastPairs& last) const {
  last.clear();
  typename Buffers::Run buffered = sort_buffered(leaf, Key{});
  while (buffered.size > 0 && !target.reaches(keys_.view(buffered.pairs[buffered.size - 1].key)))
    --buffered.size;
  for (unsigned i = rank(leaf, target); (i > 0 || buffered.size > 0) && !last.full();) {
    const Entry entry = i > 0 ? load_entry(leaf, i - 1) : Entry{};
    const Entry* other = buffered.size > 0 ? &buffered.pairs[buffered.size - 1] : nullptr;
    if (other != nullptr && (i == 0 || keys_.view(entry.key) < keys_.view(other->key))) {
      last.add(other->key, other->value);
      --buffered.size;
      continue;
    }
    --i;
    if (last.empty() || last.farthest().key != entry.key)  // of two equal keys the right one (F3)
      last.add(entry.key, entry.value);
  }
}

/// As OrderedWordEngine wants it: leaf by leaf to the left, until one has such a key.
template <class K>
void WordTree<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  for (Target target{key, strictly};;) {
    const Seen leaf = seek(target, 0);
    if (!ready(leaf)) continue;
    collect_last(*leaf.node, target, last);
    if (!leaf.valid()) continue;
    if (!last.empty()) return;
    const Word low = pm::load(leaf.node->low);
    if (low == 0) return;              // the first leaf (F1)
    target = {keys_.view(low), true};  // nothing in this leaf, so the last key of the one before
  }
}

}  // namespace perdix::detail::index::fastfair
