// The way to a node, and point lookups: get, contains, find_floor, find_below.
//
// A search (descend, trace) reads links and compares keys. It validates nothing: its callers do, by
// the latch of the one node on which their answer depends (skiplist.h). The caller holds an
// epoch::Guard.
#pragma once

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// The latch of the node that the key has or would have. Many keys share one.
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

/// The next node on a level, or null. Throws corrupt if what the link leads to has no such level.
template <class K>
Node* WordList<K>::next_of(const Node& node, unsigned level) const {
  const pm::Offset next = load_link(node, level).node;
  return next == pm::kNull ? nullptr : &checked_node(pool_, next, level);
}

/// Goes from `from`, which the bound reaches or which is the head, to the right as far as the bound
/// reaches, and then a level down: from level `levels` - 1 to `lowest`. Calls on_level(level,
/// neighbours) on each, and returns the neighbours on the last. Throws corrupt if keys do not
/// ascend on the way, so that a damaged list cannot lead round in a circle.
template <class K>
template <class OnLevel>
[[gnu::always_inline]] inline auto WordList<K>::descend(Node& from, Bound bound, unsigned levels,
                                                        OnLevel on_level, unsigned lowest) const
    -> Neighbours {
  Neighbours at{&from, nullptr};
  const Node* beyond = nullptr;  // a higher level has shown that the bound does not reach it
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

/// The neighbours of a bound on level 0: by the cached path, or from the head.
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
  if (passed != &head_) add_to_path(*passed);
  return found;
}

/// The neighbours of a key on the levels that its node may have; the right ones may be that node.
/// If the node is not `tall`, these are fewer levels, and the search may begin at the cached path.
/// `at_least`: as many levels, even if the list has fewer.
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

/// Whether a node is marked as erased; then the caller searches again. An erased node has left all
/// levels before it was marked, so the second search does not reach it. Throws corrupt if it does:
/// the pool is damaged, and the caller would search without end.
template <class K>
bool WordList<K>::is_gone(const Node& node, Erased& erased) const {
  if (!is_erased(node)) [[likely]]
    return false;
  if (erased.last == &node) pool::throw_corrupt(pool_, "an erased node", pool_.offset(&node));
  erased.last = &node;
  return true;
}

/// Whether both were neighbours in the list when the search has read the link between them. The
/// first one was in the list then, if it is not marked now. Waits for a writer of the first one: so
/// that link is durable now, or a later one is.
template <class K>
bool WordList<K>::were_adjacent(const Neighbours& neighbours, Erased& erased) const {
  latch_of(*neighbours.before).read_begin();  // waits for a writer
  return !is_gone(*neighbours.before, erased);
}

/// The value's word of a key, whose neighbours on level 0 were found. `valid` becomes false if they
/// no longer are its neighbours: then the result does not count.
template <class K>
std::optional<Word> WordList<K>::find_at(const Neighbours& neighbours, Key key, Hash16 hash,
                                         Erased& erased, bool& valid) const {
  if (!has_key(neighbours.next, key, hash)) {
    valid = were_adjacent(neighbours, erased);
    return std::nullopt;
  }
  for (;;) {
    const Seen seen = look(*neighbours.next);
    valid = !is_gone(*seen.node, erased);
    if (!valid) return std::nullopt;
    const Word value = pm::load(seen.node->value);
    if (seen.valid()) return value;
  }
}

/// The value's word of a key. Begins with the neighbours that were found, and searches again as
/// often as they have changed.
template <class K>
std::optional<Word> WordList<K>::find_from(Neighbours neighbours, Key key, Hash16 hash) const {
  Erased erased;
  for (;; neighbours = descend({key})) {
    bool valid = false;
    const std::optional<Word> value = find_at(neighbours, key, hash, erased, valid);
    if (valid) return value;
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

/// Of the pairs from the last tall node on that the bound reaches the last ones, each at a moment
/// when it was in the list and the one after it was the next. None if tall nodes are far apart.
template <class K>
void WordList<K>::collect_from_tall(Bound bound, LastPairs& last) const {
  const Node& tall = last_tall(bound);
  if (&tall == &head_) return;
  constexpr std::size_t kFar = 256;
  std::array<Pair, LastPairs::kMost> pairs;
  std::size_t size = 0;  // of all, of which `pairs` has the last ones
  for (Seen at = first_from(key_of(tall)); at.node != nullptr && bound.reaches(key_of(*at.node));) {
    if (size == kFar) return;
    collect(at, 1, [&](const Node& node, Word value) {
      if (bound.reaches(key_of(node))) pairs[size++ % pairs.size()] = {pm::load(node.key), value};
    });
  }
  for (std::size_t i = 0; i < std::min(size, pairs.size()) && !last.full(); ++i) {
    const Pair& pair = pairs[(size - 1 - i) % pairs.size()];
    last.add(pair.key, pair.value);
  }
}

/// As OrderedWordEngine wants it.
template <class K>
void WordList<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  const Bound bound{key, !strictly};
  if (last.limit() > 1 && buffers_ == nullptr) collect_from_tall(bound, last);
  if (!last.empty()) return;
  if (const auto pair = find_last_of(bound)) last.add(pair->key, pair->value);
}

}  // namespace perdix::detail::index::skiplist
