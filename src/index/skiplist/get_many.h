// Batches of lookups. A lookup waits for memory most of its time, so the keys of a group go through
// the list together, a step each in turn, and their waits overlap.
#pragma once

#include <array>

#include "index/common/groups.h"
#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// A lookup on its way. The next node is on its way from memory, too, so it was not looked at yet.
template <class K>
struct WordList<K>::Walk {
  unsigned level = 0;
  Neighbours at{};
  Node* tall = nullptr;  ///< the last one on level kTall - 1
  pm::Offset next = pm::kNull;
  bool done = false;
};

/// Asks for the node behind the one where a lookup is.
template <class K>
void WordList<K>::ask_for_next(Walk& walk) const {
  walk.next = load_link(*walk.at.before, walk.level).node;
  if (pool_.contains(walk.next, sizeof(Node)))
    __builtin_prefetch(pool_.template at<Node>(walk.next));
}

/// To the right if the next node's key is smaller, else a level down.
template <class K>
void WordList<K>::step(Walk& walk, Key key) const {
  walk.at.next = walk.next == pm::kNull ? nullptr : &checked_node(pool_, walk.next, walk.level);
  if (walk.at.next != nullptr && key_of(*walk.at.next) < key) {
    require_ascending(*walk.at.before, *walk.at.next);
    walk.at.before = walk.at.next;
  } else if (walk.level == 0) {
    walk.done = true;
    return;
  } else {
    if (walk.level == kTall - 1) walk.tall = walk.at.before;
    --walk.level;
  }
  ask_for_next(walk);
}

template <class K>
void WordList<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  std::array<Walk, kGroup> walks;
  std::array<Node*, kGroup> from{};
  if (path_ != nullptr) path_->before(keys, true, from);
  const unsigned top = std::max(levels(), 1U) - 1;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Node* const near = validated(from[i], {keys[i]});
    walks[i].level = near != nullptr ? kTall - 2 : top;
    walks[i].at.before = near != nullptr ? near : &head_;
    walks[i].tall = walks[i].at.before;
    ask_for_next(walks[i]);
  }
  for (bool on_the_way = true; on_the_way;) {
    on_the_way = false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (walks[i].done) continue;
      step(walks[i], keys[i]);
      on_the_way = true;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out[i] = buffers_ != nullptr ? find_in_ranges(keys[i], walks[i].tall)
                                 : find_from(walks[i].at, keys[i], Keys::hash16(keys[i]));
  }
}

}  // namespace perdix::detail::index::skiplist
