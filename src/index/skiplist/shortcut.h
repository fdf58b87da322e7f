// The cached path (index/common/path_cache.h): from a key to the last tall node before it, without
// the levels above. From there the search goes on.
//
// Adding and taking out (P1): a node is erased under its own latch, so a thread that adds it holds
// that latch, and has seen that the node is not marked. A node is taken out before it is marked, so
// a search that begins later does not reach it (is_gone).
#pragma once

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// Begins to fill the cached path. For a list without tall nodes it is then complete, for others
/// later.
template <class K>
void WordList<K>::open_path(const SkipListOptions& options) {
  const auto fill = [this](const std::stop_token& stop) {
    path_->template fill<K>(stop, [this](K& position) { return fill_some(position); });
  };
  if (load_link(head_, kTall - 1).node == pm::kNull) {
    fill(std::stop_token());
  } else if (options.resume_in_background) {
    filling_.start_thread(fill);
  }
}

/// A tall node that the bound reaches; null if the path knows of none that is near enough.
template <class K>
Node* WordList<K>::shortcut(Bound bound) const {
  return validated(path_->before(bound.key, !bound.inclusive), bound);
}

template <class K>
Node* WordList<K>::validated(Node* tall, Bound bound) const {
  if (tall == nullptr || is_erased(*tall)) return nullptr;
  if (path_->complete()) [[likely]]
    return tall;
  const Node* const next = next_of(*tall, kTall - 1);
  return next != nullptr && bound.reaches(key_of(*next)) ? nullptr : tall;
}

/// Adds a node to which the upper levels have led, unless another thread has its latch: false.
template <class K>
bool WordList<K>::add_to_path(Node& node) const {
  LatchSet latches;
  if (!path_->filling() || !latches.try_add(latch_of(node))) return false;
  return !is_erased(node) && path_->add(node);
}

/// Adds some nodes from a position on, which goes on. False if there are no more.
template <class K>
bool WordList<K>::fill_some(K& position) const {
  constexpr unsigned kNodesAtOnce = 64;
  const epoch::Guard guard;
  Node* node = nullptr;
  descend(head_, {position}, std::max(levels(), kTall), [&](unsigned level, const Neighbours& at) {
    if (level == kTall - 1) node = at.next;
  });
  for (unsigned i = 0; i < kNodesAtOnce; ++i) {
    if (node == nullptr) return false;
    position = K(key_of(*node));
    if (!add_to_path(*node)) {
      latch_of(*node).read_begin();  // waits for the writer that has it
      return path_->filling();
    }
    Node* const next = next_of(*node, kTall - 1);
    if (is_erased(*node)) return true;  // from the position again
    node = next;
  }
  return true;
}

}  // namespace perdix::detail::index::skiplist
