// The orders of leaves (Zhao et al. 2024, section 4.4, Algorithm 1): in which order a scan shows
// the pairs of a leaf and its write buffer.
//
// Both are unsorted. The paper sorts a leaf once per change and keeps the order in the leaf
// (`seqs`, `sort_ver`). Here it is kept in DRAM, for the pairs in both places together
// (common/scan_orders.h). Its stamp is the version of the node's lock. Algorithm 1 merges the
// buffer into the leaf first, and sorts under the leaf's lock; here nothing is written to PM, and
// no lock is taken.
//
// A writer that changes one pair of a node carries the order over to the version that its unlock
// makes. It does so before it stores the pair, since the order takes a locked instruction, which
// would wait for those stores. Whatever else becomes of the node under the same lock outdates the
// order: a change that throws, or another one. Changes of other kinds outdate it by their new
// version alone.
//
// Data read from a node counts only if the node's version is validated afterwards. Thread-safe; the
// caller holds an epoch::Guard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "index/common/last_pairs.h"
#include "index/common/scan_orders.h"
#include "index/sptree/buffers.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/middle_nodes.h"

namespace perdix::detail::index::sptree {

/// The order of a node's pairs in the state that a version of its lock names.
template <class K>
struct LeafOrder {
  const Mnode<K>* node = nullptr;
  typename Mnode<K>::Lock::Version version = 0;
  bool kept = false;     ///< the node has it already
  bool to_keep = false;  ///< it is new, of a leaf that shows no damage, or was settled
  Places places;
};

/// The pairs of a node by their places: slots of the leaf and, from kLeafPairs on, of the write
/// buffer. Any place may be asked for: the node may have lost its buffer since the places were
/// listed, or got another one, whose unused pairs hold words of strings that are gone.
template <class Buffer>
class PairsByPlace {
 public:
  PairsByPlace(const Leaf& leaf, const Buffer* buffer) : leaf_(leaf), buffer_(buffer) {}

  Word key(PlaceInLeaf place) const {
    if (place < kLeafPairs) return pm::load(pair_at(leaf_, place).key);
    return is_buffered(place) ? buffer_->key(place - kLeafPairs) : 0;
  }
  Word value(PlaceInLeaf place) const {
    if (place < kLeafPairs) return pm::load(pair_at(leaf_, place).value);
    return is_buffered(place) ? buffer_->value(place - kLeafPairs) : 0;
  }

 private:
  bool is_buffered(PlaceInLeaf place) const {
    return buffer_ != nullptr && place - kLeafPairs < buffer_->size();
  }

  const Leaf& leaf_;
  const Buffer* buffer_;  // nullptr: the node has none
};

template <class K>
class LeafOrders {
 public:
  using Node = Mnode<K>;
  using Key = View<K>;
  using Order = LeafOrder<K>;

  /// All outlive this. The orders go by the numbers of nodes.
  LeafOrders(ScanOrders& orders, const LeafStore<K>& leaves, const MiddleNodes<K>& nodes,
             const NodeBuffers<K>& buffers)
      : orders_(orders), leaves_(leaves), nodes_(nodes), buffers_(buffers) {}

  /// The order of the node's pairs: the kept one, or a new one if the kept one belongs to another
  /// state.
  void read(const Node& node, Order& order) const;

  /// Keeps a new order, once its node's version was validated.
  void keep_order(const Order& order) const {
    if (order.to_keep)
      orders_.keep_order(nodes_.number_of(*order.node), order.version, order.places);
  }

  // --- For the holder of a node's lock: what its only change will be ---

  /// None, or of a value.
  void unchanged(const Node& node) const {
    orders_.restamp(nodes_.number_of(node), node.lock.before_lock(), node.lock.after_unlock());
  }
  /// A pair comes to a place, or leaves it.
  void added(const Node& node, unsigned place) const {
    orders_.add(nodes_.number_of(node), node.lock.before_lock(), node.lock.after_unlock(),
                static_cast<PlaceInLeaf>(place));
  }
  void removed(const Node& node, unsigned place) const {
    orders_.remove(nodes_.number_of(node), node.lock.before_lock(), node.lock.after_unlock(),
                   static_cast<PlaceInLeaf>(place));
  }
  /// A pair leaves a place, and the one from the place `last` fills the gap.
  void filled(const Node& node, unsigned place, unsigned last) const;
  /// Another one than was said.
  void outdate(const Node& node) const {
    orders_.outdate(nodes_.number_of(node), node.lock.after_unlock());
  }

  /// Adds at most `limit` pairs with key >= from, ascending, and asks for what the next node needs
  /// if these are fewer.
  template <class Batch>
  void collect(const Node& node, Key from, std::size_t limit, Order& order, Batch& into) const;

  /// Finds the last pairs of the node with keys that are not above `key`, or are below.
  void collect_last(const Node& node, Key key, bool strictly, Order& order, LastPairs& last) const;

  /// Ask for the line that leads to the order of a node, and for the order.
  void prefetch_link(const Node& node) const { orders_.prefetch_link(nodes_.number_of(node)); }
  void prefetch(const Node& node) const { orders_.prefetch(nodes_.number_of(node)); }

  /// Whether the order that the node has, if it counts, is the right one (O1).
  bool sound_if_kept(const Node& node) const;

 private:
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Pairs = PairsByPlace<Buffer>;
  using Keys = Codec<K>;
  using NodeBounds = Bounds<K>;

  struct Sortable;
  unsigned first_from(const Pairs& pairs, const Places& places, Key from) const;
  void prefetch_next(const Node& next, std::size_t needed) const;
  void settle(const Node& node, Places& places) const;
  bool sort_places(const Node& node, Places& places) const;
  unsigned list_places(const Node& node, const Places& former, Places& into) const;

  ScanOrders& orders_;
  const LeafStore<K>& leaves_;
  const MiddleNodes<K>& nodes_;
  const NodeBuffers<K>& buffers_;
};

template <class K>
template <class Batch>
void LeafOrders<K>::collect(const Node& node, Key from, std::size_t limit, Order& order,
                            Batch& into) const {
  const Node* const next = nodes_.next_of(node);
  if (next != nullptr) {
    __builtin_prefetch(next);
    prefetch_link(*next);
  }
  read(node, order);
  const Pairs pairs(*node.leaf(), buffers_.of(node));
  const std::span places = order.places.span();
  const std::span rest = places.subspan(first_from(pairs, order.places, from));
  if (next != nullptr && rest.size() < limit) prefetch_next(*next, limit - rest.size());
  for (const PlaceInLeaf place : rest.first(std::min(limit, rest.size())))
    into.add(leaves_.keys().view(pairs.key(place)), pairs.value(place));
}

}  // namespace perdix::detail::index::sptree
