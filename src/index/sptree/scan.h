// Ordered iteration: leaf by leaf, each as it was at one moment, in the order of leaf_orders.h.
#pragma once

#include <cstddef>
#include <utility>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/neighbour.h"
#include "index/sptree/search.h"

namespace perdix::detail::index::sptree {

/// Made for each call.
template <class K>
class Scans {
 public:
  using Key = View<K>;

  Scans(const Parts<K>& parts, const Search<K>& search) : parts_(parts), search_(search) {}

  /// As WordIndex has it.
  void scan(Key from, std::size_t limit, const PairSink<K>& show) const;

  /// As OrderedWordEngine wants it.
  void find_last(Key key, bool strictly, LastPairs& last) const;

 private:
  using Node = Mnode<K>;
  using NodeBounds = Bounds<K>;
  using Order = LeafOrder<K>;

  /// The pairs of some leaves and their write buffers.
  using ScanBatch = Batch<K, (Codec<K>::kInline ? 2 : 1) * kLeafPairs + kBufferPairs>;

  /// Where the range of a node ends, and the node that begins there, as Mnode has them.
  struct End {
    typename Node::High high;
    Node* next;
  };

  bool read_leaves(ScanBatch& batch, K& position, unsigned wanted) const;
  bool read_batch(ScanBatch& batch, K& position, std::size_t limit) const;

  const Parts<K>& parts_;
  const Search<K> search_;
};

/// Adds pairs with key >= position, until there are `wanted` or almost, and moves `position` to
/// where the first leaf begins that was not looked at. False if there is none.
template <class K>
bool Scans<K>::read_leaves(ScanBatch& batch, K& position, unsigned wanted) const {
  Node* node = parts_.top.locate(position);
  parts_.leaf_orders.prefetch(*node);  // at the same time as the node
  for (bool first = true;; first = false) {
    Order order;
    const unsigned before = batch.added();
    const End end = search_.read_from(node, position, [&](const Node& at) {
      if (first) prefetch_pairs(*at.leaf());
      batch.truncate(before);
      parts_.leaf_orders.collect(at, position, wanted - before, order, batch);
      // Under the version: then it begins where this one ends.
      return End{at.high.load(std::memory_order_acquire), parts_.nodes.next_of(at)};
    });
    parts_.leaf_orders.keep_order(order);
    if (NodeBounds::is_open(end.high)) return false;
    if (batch.added() == wanted) return true;
    position = NodeBounds::after(end.high);
    batch.require_below(parts_.pool, position);
    // Without a next node cold leaves follow, which another search makes warm.
    if (batch.added() + 1 == wanted || end.next == nullptr) return true;
    node = end.next;
  }
}

/// As scan_by_batches() wants it.
template <class K>
bool Scans<K>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  const unsigned count = batch.worth_reading(limit);
  batch.clear();
  const bool more = read_leaves(batch, position, count + 1);
  batch.copy_pairs(parts_.pool, parts_.leaves.values(), count);
  parts_.pool.require_usable();  // what was read may have been there before a sync failed
  if (batch.complete()) return more;
  position = batch.next_key();
  return true;
}

template <class K>
void Scans<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  scan_by_batches<ScanBatch, K>(parts_.pool, from, limit, show,
                                [this](ScanBatch& batch, K& position, std::size_t left) {
                                  return read_batch(batch, position, left);
                                });
}

/// Leaf by leaf to the left, until one has such a key. `position` is in the leaf that is looked at,
/// and `bound` at its end, or further to the right if keys lie between.
template <class K>
void Scans<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  K bound(key), position(key);
  for (;;) {
    Order order;
    const auto high =
        search_.read_from(parts_.top.locate(position), position, [&](const Node& node) {
          parts_.leaf_orders.collect_last(node, bound, strictly, order, last);
          return node.high.load(std::memory_order_acquire);
        });
    parts_.leaf_orders.keep_order(order);
    if (!NodeBounds::is_open(high) && NodeBounds::after(high) < Key(bound)) {
      position = *predecessor(Key(bound));
      continue;
    }
    if (!last.empty()) return;
    auto before = just_below(NodeBounds::view(order.node->low));
    if (!before) return;  // that was the first leaf
    position = std::move(*before);
    bound = K(NodeBounds::view(order.node->low));
    strictly = true;
  }
}

}  // namespace perdix::detail::index::sptree
