// Lookups and iteration in a list with write buffers, range by range: what a range has counts if
// the version of its latch is the same afterwards. Functions of the buffers, since they have
// nothing of their own. The caller holds an epoch::Guard.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "index/skiplist/buffers.h"
#include "index/skiplist/lookups.h"

namespace perdix::detail::index::skiplist {

/// What a range has for the key. False if it has changed in between.
template <class K>
bool look_into_range(const RangeBuffers<K>& buffers, const SeenNode& owner, const HashedKey<K>& key,
                     std::optional<Word>& value) {
  if (const auto found = buffers.find(*owner.node, key)) {
    value = found.value();
  } else {
    const Node* const node = buffers.ranges().find(*owner.node, key);
    value =
        node == nullptr || is_hollow(*node) ? std::nullopt : std::optional(pm::load(node->value));
  }
  return owner.valid();
}

/// The value's word of a key. `near`: a tall node before the key or at it, or the head, as it was a
/// moment ago.
template <class K>
std::optional<Word> find_in_ranges(RangeBuffers<K>& buffers, const HashedKey<K>& key, Node& near) {
  const Bound<K> bound{key.key, true};
  Erased erased;
  for (SeenNode owner = buffers.ranges().owner_at(near, bound, erased);; owner = {}) {
    if (owner.node == nullptr || !buffers.buffers().ready(owner)) owner = buffers.owner_of(bound);
    std::optional<Word> value;
    if (look_into_range(buffers, owner, key, value)) return value;
    pm::on_step("skiplist: a lookup begins again");
  }
}

/// The last pair of all that is in a range which the bound reaches.
template <class K>
std::optional<Pair> last_of_range(const RangeBuffers<K>& buffers, Node& owner, Bound<K> bound) {
  std::optional<Pair> last = buffers.ranges().last(owner, bound);
  const auto* const buffer = buffers.of(owner);
  const Codec<K>& keys = buffers.nodes().keys();
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i) {
    const View<K> key = keys.view(buffer->key(i));
    if (!bound.reaches(key) || (last && !(keys.view(last->key) < key))) continue;
    last = Pair{buffer->key(i), buffer->value(i)};
  }
  return last;
}

/// The pair of the last key that the bound reaches. A range that has nothing, since its owner is
/// hollow, still must not have anything when the one before it has been looked at.
template <class K>
std::optional<Pair> find_last_in_ranges(RangeBuffers<K>& buffers, Bound<K> bound) {
  const Nodes<K>& nodes = buffers.nodes();
  for (;;) {
    const SeenNode owner = buffers.owner_of(bound);
    std::optional<Pair> last = last_of_range(buffers, *owner.node, bound);
    if (!last && owner.node != &nodes.head())
      last = find_last_in_ranges<K>(buffers, {nodes.key_of(*owner.node), false});
    if (owner.valid()) return last;
    pm::on_step("skiplist: a lookup begins again");
  }
}

/// Pairs in the order of their keys, with their nodes; null for those that buffers have.
struct PlacedPairs {
  struct PlacedPair {
    const Node* node;
    Pair pair;
  };

  std::array<PlacedPair, kShownAtOnce> pairs;
  unsigned size = 0;

  void add(const Node* node, Pair pair) { pairs[size++] = {node, pair}; }
};

/// Adds the pairs of a range with key >= from until there are `limit`. Returns the key from which
/// it goes on; none behind the last range. `following`: the owner of the next range, if it goes on
/// there.
template <class K>
std::optional<View<K>> show_range(const RangeBuffers<K>& buffers, const SeenNode& owner,
                                  View<K> from, std::size_t limit, PlacedPairs& shown,
                                  SeenNode& following) {
  const Nodes<K>& nodes = buffers.nodes();
  const Ranges<K>& ranges = buffers.ranges();
  const auto buffered = buffers.buffers().sorted(nodes.pool().offset(owner.node), from);
  const auto key_in_buffer = [&](unsigned i) { return nodes.keys().view(buffered.pairs[i].key); };
  Node* const end = ranges.end_of(*owner.node);
  const bool from_owner = owner.node != &nodes.head() && !(nodes.key_of(*owner.node) < from);
  const Node* node = from_owner ? owner.node : ranges.descend(*owner.node, {from}).next;
  for (unsigned i = 0;;) {
    const bool in_list = node != nullptr && node != end;
    const bool hollow = in_list && is_hollow(*node);
    const bool in_buffer =
        i < buffered.size && (!in_list || key_in_buffer(i) < nodes.key_of(*node));
    if (!in_list && !in_buffer) break;
    if (shown.size == limit && !hollow) return in_buffer ? key_in_buffer(i) : nodes.key_of(*node);
    if (in_buffer && shown.size < limit) {
      shown.add(nullptr, buffered.pairs[i++]);
      continue;
    }
    if (!hollow) shown.add(node, pair_of(*node));
    const Node* const next = nodes.next_of(*node, 0);
    if (next != nullptr) nodes.require_ascending(*node, *next);
    node = next;
  }
  if (end == nullptr) return std::nullopt;
  following = ranges.look(*end);
  return nodes.key_of(*end);
}

/// As collect_nodes(), each pair as its range was at one moment. The node is null for a pair that
/// is in a buffer. `at`: the owner of the position's range, or none.
template <class K, class Add>
bool collect_ranges(RangeBuffers<K>& buffers, SeenNode& at, K& position, std::size_t limit,
                    Add add) {
  limit = std::min<std::size_t>(limit, kShownAtOnce);
  PlacedPairs shown;
  View<K> from = position;
  bool more = true;
  while (more && shown.size < limit) {
    if (at.node == nullptr || !at.valid() || !buffers.buffers().ready(at))
      at = buffers.owner_of({from, true});
    const unsigned before = shown.size;
    SeenNode following = at;
    const auto next = show_range(buffers, at, from, limit, shown, following);
    if (!at.valid()) {
      shown.size = before;
      continue;
    }
    at = following;
    more = next.has_value();
    if (more) from = *next;
  }
  for (unsigned i = 0; i < shown.size; ++i)
    add(shown.pairs[i].node, shown.pairs[i].pair.key, shown.pairs[i].pair.value);
  if (more) position = K(from);
  return more;
}

}  // namespace perdix::detail::index::skiplist
