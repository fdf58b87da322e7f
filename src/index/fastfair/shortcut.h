// The cached path (index/common/path_cache.h): from a key to its leaf without inner nodes. It leads
// to leaves, by their low bounds.
//
// Adding and taking out (P1): a leaf is merged away under the latches of its parent, of its left
// neighbour and of itself, and is rewritten under those of its parent and of itself. So a thread
// that adds it holds one of these. The leaf is taken out before anything else changes, and marked
// as gone before the latches are released. So a thread that got the leaf from the path, and then
// its version, sees the mark.
#pragma once

#include <array>

#include "index/fastfair/fastfair.h"
#include "index/fastfair/get_many.h"

namespace perdix::detail::index::fastfair {

/// Whether a leaf is no part of the tree any more, for threads that have come to it by the path.
inline bool is_gone(const Node& leaf) { return pm::load(number_of(leaf)) == kGone; }

/// Begins to fill the cached path. For a tree with one leaf it is then complete.
template <class K>
void WordTree<K>::open_path(const FastFairOptions& options) {
  const auto has_one_leaf = [this] {
    const epoch::Guard guard;
    const Node& top = root();
    return meta_of(top).level == 0 && pm::load(top.next) == pm::kNull;
  };
  const auto fill = [this](const std::stop_token& stop) {
    path_->template fill<K>(stop, [this](K& position) { return fill_some(position); });
  };
  if (has_one_leaf()) {
    fill(std::stop_token());
  } else if (options.resume_in_background) {
    filling_.start_thread(fill);
  }
}

/// A leaf that holds the target or is at the left of the one that does; no node if the path knows
/// of none that is near enough.
template <class K>
auto WordTree<K>::shortcut(Target target) const -> Seen {
  return validated(path_->before(target.key, target.strictly_below), target);
}

template <class K>
auto WordTree<K>::validated(Node* leaf, Target target) const -> Seen {
  if (leaf == nullptr) return {};
  const Seen seen = look(*leaf);
  if (is_gone(*leaf)) [[unlikely]]
    return {};
  if (!path_->complete() && right_of(*leaf, target) != nullptr) return {};
  return seen;
}

/// Adds a leaf to which the inner nodes have led. It is not waited for.
template <class K>
void WordTree<K>::add_to_path(const Seen& leaf) const {
  if (!path_->filling() || !leaf.latch->try_upgrade(leaf.version)) return;
  LatchSet latches;
  latches.add_held(*leaf.latch);
  path_->add(*leaf.node);
}

/// approach() to a leaf. One that the path does not know is found from the root and remembered.
/// Apart from approach(), which is smaller and faster without it.
template <class K>
[[gnu::noinline]] auto WordTree<K>::approach_by_path(Target target, Node** stray) const -> Seen {
  if (const Seen leaf = shortcut(target); leaf.node != nullptr) return leaf;
  add_to_path(descend(target, 0, stray));
  const Seen leaf = shortcut(target);
  return leaf.node != nullptr ? leaf : descend(target, 0, stray);
}

/// Adds some leaves from a position on, which goes on. False if there are no more. A leaf that was
/// seen before it split is followed by one that was added by the thread that has split it.
template <class K>
bool WordTree<K>::fill_some(K& position) const {
  constexpr unsigned kLeavesAtOnce = 64;
  const epoch::Guard guard;
  Seen leaf = seek({position}, 0);
  for (unsigned i = 0; i < kLeavesAtOnce; ++i) {
    add_to_path(leaf);
    leaf = look(*leaf.node);
    if (is_gone(*leaf.node)) return true;  // from the position again
    if (!path_->has(*leaf.node)) return path_->filling();
    Node* const next = after(*leaf.node);
    const Seen following = next == nullptr ? Seen{} : look(*next);
    if (!leaf.valid()) return true;
    if (next == nullptr) return false;
    position = K(low_of(*next));
    leaf = following;
  }
  return true;
}

/// Marks a leaf that was taken out, when its place is another's, durably. The mark is not durable:
/// the leaf is free after a crash.
template <class K>
void WordTree<K>::mark_as_gone(Node& leaf) const {
  pm().store(number_of(leaf), kGone);
}

/// find_words() by the cached path.
template <class K>
void WordTree<K>::find_by_path(std::span<const Key> keys,
                               std::span<std::optional<Word>> out) const {
  std::array<Node*, kGroup> leaves;
  path_->before(keys, false, leaves);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (leaves[i] != nullptr) prefetch(*leaves[i]);
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    out[i] = find_from(validated(leaves[i], {keys[i]}), keys[i]);
}

}  // namespace perdix::detail::index::fastfair
