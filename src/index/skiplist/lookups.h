// Lookups and iteration in a list without write buffers. They take no latch. They follow any links,
// and at the end wait until the latch of the one node is free on which their answer depends: the
// node of the key, whose version they validate, or, if there is none, the last node before it.
// Functions of the ways, since they have nothing of their own. The caller holds an epoch::Guard.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "index/common/groups.h"
#include "index/common/last_pairs.h"
#include "index/skiplist/ways.h"

namespace perdix::detail::index::skiplist {

inline constexpr unsigned kShownAtOnce = 64;  ///< pairs of a scan under one guard

/// The value's word of a key, whose neighbours on level 0 were found. `valid` becomes false if they
/// no longer are its neighbours: then the result does not count.
template <class K>
std::optional<Word> find_at(const Nodes<K>& nodes, const Neighbours& neighbours,
                            const HashedKey<K>& key, Erased& erased, bool& valid) {
  if (!nodes.has_key(neighbours.next, key)) {
    valid = nodes.were_adjacent(neighbours, erased);
    return std::nullopt;
  }
  for (;;) {
    const SeenNode seen = nodes.look(*neighbours.next);
    valid = !nodes.is_gone(*seen.node, erased);
    if (!valid) return std::nullopt;
    const Word value = pm::load(seen.node->value);
    if (seen.valid()) return value;
  }
}

/// The value's word of a key. Begins with the neighbours that were found, and searches again as
/// often as they have changed.
template <class K>
std::optional<Word> find_from(const Ways<K>& ways, Neighbours neighbours, const HashedKey<K>& key) {
  Erased erased;
  for (;; neighbours = ways.descend({key.key})) {
    bool valid = false;
    const std::optional<Word> value = find_at(ways.nodes(), neighbours, key, erased, valid);
    if (valid) return value;
    pm::on_step("skiplist: a lookup begins again");
  }
}

// --- Batches: a lookup waits for memory most of its time, so the keys of a group go through the
// ---
// --- list together, a step each in turn, and their waits overlap ---

/// A lookup on its way. The next node is on its way from memory, too, so it was not looked at yet.
template <class K>
class GroupedSearch {
 public:
  /// Begins at a tall node before the key, or at the head if that is null.
  void begin(const Nodes<K>& nodes, Node* near) {
    level_ = near != nullptr ? kTall - 2 : std::max(nodes.levels(), 1U) - 1;
    at_.before = tall_ = near != nullptr ? near : &nodes.head();
    ask_for_next(nodes);
  }

  /// To the right if the next node's key is smaller, else a level down. Returns false on level 0,
  /// where it ends.
  bool step(const Nodes<K>& nodes, View<K> key) {
    if (done_) return false;
    at_.next = next_ == pm::kNull ? nullptr : &checked_node(nodes.pool(), next_, level_);
    if (at_.next != nullptr && nodes.key_of(*at_.next) < key) {
      nodes.require_ascending(*at_.before, *at_.next);
      at_.before = at_.next;
    } else if (level_ == 0) {
      done_ = true;
      return true;
    } else {
      if (level_ == kTall - 1) tall_ = at_.before;
      --level_;
    }
    ask_for_next(nodes);
    return true;
  }

  /// The neighbours of the key on level 0, and the last tall node before it, or the head.
  const Neighbours& found() const { return at_; }
  Node& tall() const { return *tall_; }

 private:
  /// Asks for the node behind the one where the lookup is.
  void ask_for_next(const Nodes<K>& nodes) {
    next_ = load_link(*at_.before, level_).node;
    if (nodes.pool().contains(next_, sizeof(Node)))
      __builtin_prefetch(nodes.pool().template at<Node>(next_));
  }

  unsigned level_ = 0;
  Neighbours at_{};
  Node* tall_ = nullptr;
  pm::Offset next_ = pm::kNull;
  bool done_ = false;
};

/// Searches for at most kGroup keys, and calls show(i, search) for each of them in the end.
template <class K, class Show>
void search_together(const Ways<K>& ways, std::span<const View<K>> keys, Show show) {
  const Nodes<K>& nodes = ways.nodes();
  std::array<GroupedSearch<K>, kGroup> searches;
  std::array<Node*, kGroup> from{};
  ways.shortcuts(keys, from);
  for (std::size_t i = 0; i < keys.size(); ++i) searches[i].begin(nodes, from[i]);
  for (bool on_the_way = true; on_the_way;) {
    on_the_way = false;
    for (std::size_t i = 0; i < keys.size(); ++i) on_the_way |= searches[i].step(nodes, keys[i]);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) show(i, searches[i]);
}

// --- Neighbours of a key, and iteration ---

/// What read(neighbours) says of the neighbours of a bound at a moment when they were neighbours.
template <class K, class Read>
auto read_neighbours(const Ways<K>& ways, Bound<K> bound, Read read) {
  const Nodes<K>& nodes = ways.nodes();
  Erased erased;
  for (;;) {
    const Neighbours neighbours = ways.descend(bound);
    const SeenNode before = nodes.look(*neighbours.before);
    if (nodes.is_gone(*before.node, erased)) continue;
    if (load_link(*before.node, 0).node != nodes.offset_of(neighbours.next)) continue;
    const auto found = read(neighbours);
    if (before.valid()) return found;
  }
}

/// The pair of the last key that the bound reaches.
template <class K>
std::optional<Pair> find_last(const Ways<K>& ways, Bound<K> bound) {
  return read_neighbours(ways, bound, [&](const Neighbours& at) {
    return at.before == &ways.nodes().head() ? std::nullopt : std::optional(pair_of(*at.before));
  });
}

/// The first node whose key is not below `from`, at a moment when it was; none if there is none.
template <class K>
SeenNode first_from(const Ways<K>& ways, View<K> from) {
  return read_neighbours(ways, Bound<K>{from}, [&](const Neighbours& at) {
    return at.next == nullptr ? SeenNode{} : ways.nodes().look(*at.next);
  });
}

/// Calls add(node, value) for at most `limit` nodes from `at` on, each at a moment when it was in
/// the list and the one after it was the next. `at` is then behind them.
template <class K, class Add>
void collect(const Ways<K>& ways, SeenNode& at, std::size_t limit, Add add) {
  const Nodes<K>& nodes = ways.nodes();
  for (std::size_t added = 0; at.node != nullptr && added < limit;) {
    const Word value = pm::load(at.node->value);
    Node* const next = nodes.next_of(*at.node, 0);
    const SeenNode following = next == nullptr ? SeenNode{} : nodes.look(*next);
    if (!at.valid()) {  // it may be gone, and a node that came between it and the next was not seen
      at = first_from(ways, nodes.key_of(*at.node));
      continue;
    }
    if (next != nullptr) nodes.require_ascending(*at.node, *next);
    add(*at.node, value);
    ++added;
    at = following;
  }
}

/// Calls add(node, key, value) for pairs from a position on, at most `limit` and kShownAtOnce, each
/// as collect() shows it. Moves the position behind them unless that is the limit; false if there
/// are no more. `at`: the first node at or behind the position, if it is valid. It was found under
/// an earlier guard and may be freed by now, but as long as its version is the same it is in the
/// list, and if it is so under this guard, it stays readable until the guard ends.
template <class K, class Add>
bool collect_nodes(const Ways<K>& ways, SeenNode& at, K& position, std::size_t limit, Add add) {
  if (at.node == nullptr || !at.valid()) at = first_from<K>(ways, position);
  collect(ways, at, std::min<std::size_t>(limit, kShownAtOnce),
          [add](const Node& node, Word value) { add(&node, pm::load(node.key), value); });
  if (at.node != nullptr && limit > kShownAtOnce) position = K(ways.nodes().key_of(*at.node));
  return at.node != nullptr;
}

/// Of the pairs from the last tall node on that the bound reaches the last ones, each at a moment
/// when it was in the list and the one after it was the next. None if tall nodes are far apart.
template <class K>
void collect_from_tall(const Ways<K>& ways, Bound<K> bound, LastPairs& last) {
  const Nodes<K>& nodes = ways.nodes();
  const Node& tall = ways.last_tall(bound);
  if (&tall == &nodes.head()) return;
  constexpr std::size_t kFar = 256;
  std::array<Pair, LastPairs::kMax> pairs;
  std::size_t size = 0;  // of all, of which `pairs` has the last ones
  for (SeenNode at = first_from(ways, nodes.key_of(tall));
       at.node != nullptr && bound.reaches(nodes.key_of(*at.node));) {
    if (size == kFar) return;
    collect(ways, at, 1, [&](const Node& node, Word value) {
      if (bound.reaches(nodes.key_of(node)))
        pairs[size++ % pairs.size()] = {pm::load(node.key), value};
    });
  }
  for (std::size_t i = 0; i < std::min(size, pairs.size()) && !last.full(); ++i) {
    const Pair& pair = pairs[(size - 1 - i) % pairs.size()];
    last.add(pair.key, pair.value);
  }
}

}  // namespace perdix::detail::index::skiplist
