// Ordered iteration: leaf by leaf, each as it was at one moment, in the order of leaf_orders.h.
#pragma once

#include <algorithm>

#include "index/sptree/sptree.h"

namespace perdix::detail::index::sptree {

/// The pairs of one leaf and its write buffer.
template <class K>
struct WordTree<K>::ScanBatch : Batch<K, kLeafPairs + kBufferPairs> {
  std::size_t read = 0;  ///< pairs of all batches so far

  /// How many pairs to read next. A scan says nothing of its end before it is there, so it is taken
  /// to go on for about as long as it has: leaves beyond the end are read in vain.
  std::size_t worth_reading() const {
    constexpr std::size_t kLeast = 32;
    return read == 0 ? kLeafPairs : std::max(kLeast, read);
  }
};

/// Prefetches the lines of the next node that the scan will need. A scan that has shown few pairs
/// may end before it comes there, and then the leaf is not worth its lines.
template <class K>
void WordTree<K>::prefetch_after(const Node& node, std::size_t read) const {
  constexpr std::size_t kFew = 48;
  const Node* next = nodes_.next_of(node);
  if (next == nullptr || (read >= kFew && read <= kLeafPairs / 2)) return;
  leaf_orders_.prefetch(*next);
  prefetch_pairs(*next->leaf());
}

/// As scan_by_batches() wants it: what there is in the leaf of a position.
template <class K>
bool WordTree<K>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  Order order;
  Node* const start = top_.locate(position);
  leaf_orders_.prefetch(*start);  // at the same time as the node
  const std::size_t most = std::min(limit, batch.worth_reading());
  const auto high = read_node_from(start, position, [&](const Node& node) {
    // One more, with which the next batch begins.
    leaf_orders_.collect(node, position, most + 1, order, batch);
    return node.high.load(std::memory_order_acquire);
  });
  batch.copy_pairs(pool(), values(), most);
  leaf_orders_.keep_order(order);
  pool().require_usable();  // what was read may have been there before a sync failed
  batch.read += batch.size();
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (!NodeBounds::is_open(high)) {
    position = NodeBounds::after(high);
    batch.require_below(pool(), position);
    if (batch.size() < limit) prefetch_after(*order.node, batch.read);
  } else {
    return false;
  }
  return true;
}

template <class K>
void WordTree<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  scan_by_batches<ScanBatch, K>(pool(), from, limit, show,
                                [this](ScanBatch& batch, K& position, std::size_t left) {
                                  return read_batch(batch, position, left);
                                });
}

/// As OrderedWordEngine wants it: leaf by leaf to the left, until one has such a key. `position` is
/// in the leaf that is looked at, and `bound` at its end, or further to the right if keys lie
/// between.
template <class K>
void WordTree<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  K bound(key), position(key);
  for (;;) {
    Order order;
    const auto high = read_node_from(top_.locate(position), position, [&](const Node& node) {
      leaf_orders_.collect_last(node, bound, strictly, order, last);
      return node.high.load(std::memory_order_acquire);
    });
    leaf_orders_.keep_order(order);
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
