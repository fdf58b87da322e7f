// The way to a node, and what only reads: get, contains, find_floor, find_below. A search needs
// only the links, and keys to compare; the callers validate what it finds.
#pragma once

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// Each key has one, many keys the same.
template <class K>
Latch& WordList<K>::latch_of_key(Key key) const {
  if constexpr (Keys::kInline) {
    return latches_.of(key);
  } else {
    return latches_.of(Keys::hash16(key));
  }
}

template <class K>
Latch& WordList<K>::latch_of(const Node& node) const {
  if (&node == &head_) return latches_.of(pool_.offset(&head_));
  const Word word = pm::load(node.key);
  if constexpr (Keys::kInline) {
    return latches_.of(word);
  } else {
    return latches_.of(Keys::hash16_of_word(word));
  }
}

/// The next node on a level, or null. It has that level, or throws corrupt.
template <class K>
Node* WordList<K>::next_of(const Node& node, unsigned level) const {
  const pm::Offset next = load_link(node, level).node;
  return next == pm::kNull ? nullptr : &checked_node(pool_, next, level);
}

/// From a node that the bound reaches, or the head, goes to the right as far as the bound reaches,
/// and then a level down, from the highest of `levels` to the `lowest`. Calls on_level(level,
/// neighbours) for each. Keys ascend on the way, so that a damaged list cannot lead round in a
/// circle; throws corrupt.
template <class K>
template <class OnLevel>
[[gnu::always_inline]] inline auto WordList<K>::descend(Node& from, Bound bound, unsigned levels,
                                                        OnLevel on_level, unsigned lowest) const
    -> Neighbours {
  Neighbours at{&from, nullptr};
  const Node* beyond = nullptr;  // is not reached, as a higher level has shown
  for (unsigned level = levels; level-- > lowest;) {
    for (;;) {
      at.next = next_of(*at.before, level);
      if (at.next == nullptr || at.next == beyond) break;
      if (!bound.reaches(key_of(*at.next))) break;
      require_ascending(*at.before, *at.next);
      at.before = at.next;
    }
    beyond = at.next;
    on_level(level, at);
  }
  return at;
}

template <class K>
auto WordList<K>::descend_from_head(Bound bound) const -> Neighbours {
  return descend(head_, bound, std::max(levels(), 1U), [](unsigned, const Neighbours&) {});
}

/// By the cached path, or from the head.
template <class K>
auto WordList<K>::descend(Bound bound) const -> Neighbours {
  if (path_ == nullptr) [[likely]]
    return descend_from_head(bound);
  if (Node* const from = shortcut(bound); from != nullptr) [[likely]]
    return descend(*from, bound, kTall - 1, [](unsigned, const Neighbours&) {});
  Node* passed = &head_;
  const Neighbours found =
      descend(head_, bound, std::max(levels(), 1U), [&](unsigned level, const Neighbours& at) {
        if (level == kTall - 1) passed = at.before;
      });
  if (passed != &head_) remember(*passed);
  return found;
}

/// The neighbours of a key on all levels that it may have, those at its right with the key itself
/// among them. Of a node that is not tall that is less, and a shorter way.
template <class K>
auto WordList<K>::trace(Key key, bool tall, unsigned at_least) const -> Path {
  Path path;
  const auto keep = [&](unsigned level, const Neighbours& at) { path.at[level] = at; };
  Node* const from = tall || path_ == nullptr ? nullptr : shortcut({key});
  path.levels =
      from != nullptr ? kTall - 1 : std::max(std::min(levels() + 1, kMaxHeight), at_least);
  descend(from != nullptr ? *from : head_, {key}, path.levels, keep);
  return path;
}

/// Whether a node is marked as erased. An erased node has left all levels, so a search that begins
/// later does not reach it, and its operation is not repeated without end. Throws corrupt if such a
/// search did reach it: then the pool is damaged.
template <class K>
bool WordList<K>::is_gone(const Node& node, Erased& erased) const {
  if (!is_erased(node)) [[likely]]
    return false;
  if (erased.last == &node) pool::throw_corrupt(pool_, "an erased node", pool_.offset(&node));
  erased.last = &node;
  return true;
}

/// Whether nothing was between both when the search has read the link from one to the other: the
/// first was in the list, since it is not marked later. That link is durable now, or another one
/// that came after it: the thread that stored it has released the latch.
template <class K>
bool WordList<K>::adjacent(const Neighbours& neighbours, Erased& erased) const {
  latch_of(*neighbours.before).read_begin();  // waits for a writer
  return !is_gone(*neighbours.before, erased);
}

/// The value's word of a key whose neighbours were found, those of level 0; not `settled` if they
/// no longer are.
template <class K>
std::optional<Word> WordList<K>::find_at(const Neighbours& neighbours, Key key, Hash16 hash,
                                         Erased& erased, bool& settled) const {
  if (!has_key(neighbours.next, key, hash)) {
    settled = adjacent(neighbours, erased);
    return std::nullopt;
  }
  for (;;) {
    const Seen seen = look(*neighbours.next);
    settled = !is_gone(*seen.node, erased);
    if (!settled) return std::nullopt;
    const Word value = pm::load(seen.node->value);
    if (seen.valid()) return value;
  }
}

/// The same, in the place that was found or, if that has changed, in the one of now.
template <class K>
std::optional<Word> WordList<K>::find_from(Neighbours neighbours, Key key, Hash16 hash) const {
  Erased erased;
  for (;; neighbours = descend({key})) {
    bool settled = false;
    const std::optional<Word> value = find_at(neighbours, key, hash, erased, settled);
    if (settled) return value;
    pm::on_step("skiplist: a lookup begins again");
  }
}

template <class K>
std::optional<Word> WordList<K>::find_word(Key key) const {
  if (buffers_ != nullptr) [[unlikely]]
    return find_in_ranges(key, nullptr);
  return find_from(descend({key}), key, Keys::hash16(key));
}

/// The pair of the last key that the bound reaches.
template <class K>
auto WordList<K>::find_last_of(Bound bound) const -> std::optional<Pair> {
  if (buffers_ != nullptr) [[unlikely]]
    return find_last_in_ranges(bound);
  Erased erased;
  for (;;) {
    const Neighbours neighbours = descend(bound);
    const Seen before = look(*neighbours.before);
    if (is_gone(*before.node, erased)) continue;
    const pm::Offset next = load_link(*before.node, 0).node;
    const Pair pair{pm::load(before.node->key), pm::load(before.node->value)};
    if (!before.valid() || next != offset_of(neighbours.next)) continue;
    return before.node == &head_ ? std::nullopt : std::optional(pair);
  }
}

}  // namespace perdix::detail::index::skiplist
