// The ranges of a list with write buffers (buffers.h).
//
// A range begins at a tall node of the list, its owner, and ends before the next one; the first one
// begins at the head. A thread that changes a range holds its latch, which is chosen by the owner's
// place: its links of levels 0 and 1, its values, what its buffer holds, and where it ends, which
// is the owner's link of level kTall - 1. So what was read of a range is right, and durable, if the
// version of its latch is still the same.
//
// An owner comes into its levels under its own latch, as a node, too: so a range that is new is
// looked at when that is free (owner_at).
#pragma once

#include <cstdint>
#include <optional>

#include "index/skiplist/ways.h"

namespace perdix::detail::index::skiplist {

template <class K>
class Ranges {
 public:
  using Key = View<K>;

  /// The ways outlive this. `budget`: of DRAM that buffers take. Few latches where that is small,
  /// since they are part of it.
  Ranges(const Ways<K>& ways, std::uint64_t budget)
      : ways_(ways),
        nodes_(ways.nodes()),
        latches_(budget < kLarge ? Latches::kBits - 3 : Latches::kBits) {}

  const Nodes<K>& nodes() const { return nodes_; }
  const Latches& latches() const { return latches_; }

  SeenNode look(Node& owner) const {
    return skiplist::look(owner, latches_.of(nodes_.pool().offset(&owner)));
  }

  /// A tall node as the owner of the bound's range; none if it is not, or no longer.
  SeenNode owner_at(Node& tall, Bound<K> bound, Erased& erased) const {
    nodes_.latch_of(tall).read_begin();  // waits for the thread that brings it into its levels
    const SeenNode seen = look(tall);
    if (nodes_.is_gone(tall, erased)) return {};
    const Node* const end = end_of(tall);
    if (end != nullptr && bound.reaches(nodes_.key_of(*end))) return {};
    return seen;
  }

  /// The owner of the range with the last key that the bound may reach; none if it has changed.
  SeenNode owner_of(Bound<K> bound, Erased& erased) const {
    return owner_at(ways_.last_tall(bound), bound, erased);
  }

  /// The owner at a place, the latch of whose range is held. Throws corrupt if no tall node is
  /// there.
  Node& at(pm::Offset place) const {
    if (place == nodes_.pool().offset(&nodes_.head())) return nodes_.head();
    return checked_node(nodes_.pool(), place, kTall - 1);
  }

  /// Whether a tall node is the owner of a range.
  bool owns(const Node& tall) const {
    return &tall == &nodes_.head() || (nodes_.keys().sound(pm::load(tall.key)) &&
                                       &ways_.last_tall({nodes_.key_of(tall), true}) == &tall);
  }

  // --- What is in a range ---

  /// The owner of the next range; null behind the last one.
  Node* end_of(const Node& owner) const { return nodes_.next_of(owner, kTall - 1); }

  /// The neighbours of a bound that the owner reaches, on level 0.
  Neighbours descend(Node& owner, Bound<K> bound) const {
    return nodes_.descend(owner, bound, kTall - 1);
  }

  /// Whether a key is that of the owner.
  bool is_own(const Node& owner, const HashedKey<K>& key) const {
    return &owner != &nodes_.head() && nodes_.has_key(&owner, key);
  }

  /// The node of a key, which may be hollow; null if there is none.
  Node* find(Node& owner, const HashedKey<K>& key) const {
    if (is_own(owner, key)) return &owner;
    Node* const node = descend(owner, {key.key}).next;
    return nodes_.has_key(node, key) ? node : nullptr;
  }

  /// The last pair of the nodes that the bound reaches.
  std::optional<Pair> last(Node& owner, Bound<K> bound) const {
    const Node* last = descend(owner, bound).before;
    while (last != &owner && is_hollow(*last))
      last = descend(owner, {nodes_.key_of(*last), false}).before;
    if (last == &nodes_.head() || is_hollow(*last)) return std::nullopt;
    return pair_of(*last);
  }

 private:
  static constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

  const Ways<K>& ways_;
  const Nodes<K>& nodes_;
  const Latches latches_;
};

}  // namespace perdix::detail::index::skiplist
