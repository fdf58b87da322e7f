// Ordered iteration: leaf by leaf, each as it was at one moment, in the order of leaf_orders.h.
#pragma once

#include <algorithm>
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

  struct ScanBatch;
  bool read_batch(ScanBatch& batch, K& position, std::size_t limit) const;
  void prefetch_after(const Node& node, std::size_t read) const;

  const Parts<K>& parts_;
  const Search<K> search_;
};

/// The pairs of one leaf and its write buffer.
template <class K>
struct Scans<K>::ScanBatch : Batch<K, kLeafPairs + kBufferPairs> {
  std::size_t read = 0;  ///< pairs of all batches so far

  /// How many pairs to read next. A scan says nothing of its end before it is there, so it is taken
  /// to go on for about as long as it has: leaves beyond the end are read in vain.
  std::size_t worth_reading() const {
    constexpr std::size_t kMin = 32;
    return read == 0 ? kLeafPairs : std::max(kMin, read);
  }
};

/// Prefetches the lines of the next node that the scan will need. A scan that has shown few pairs
/// may end before it comes there, and then the leaf is not worth its lines.
template <class K>
void Scans<K>::prefetch_after(const Node& node, std::size_t read) const {
  constexpr std::size_t kFew = 48;
  const Node* next = parts_.nodes.next_of(node);
  if (next == nullptr || (read >= kFew && read <= kLeafPairs / 2)) return;
  parts_.leaf_orders.prefetch(*next);
  prefetch_pairs(*next->leaf());
}

/// As scan_by_batches() wants it: what there is in the leaf of a position.
template <class K>
bool Scans<K>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  Order order;
  Node* const start = parts_.top.locate(position);
  parts_.leaf_orders.prefetch(*start);  // at the same time as the node
  const std::size_t most = std::min(limit, batch.worth_reading());
  const auto high = search_.read_from(start, position, [&](const Node& node) {
    // One more, with which the next batch begins.
    parts_.leaf_orders.collect(node, position, most + 1, order, batch);
    return node.high.load(std::memory_order_acquire);
  });
  batch.copy_pairs(parts_.pool, parts_.leaves.values(), most);
  parts_.leaf_orders.keep_order(order);
  parts_.pool.require_usable();  // what was read may have been there before a sync failed
  batch.read += batch.size();
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (!NodeBounds::is_open(high)) {
    position = NodeBounds::after(high);
    batch.require_below(parts_.pool, position);
    if (batch.size() < limit) prefetch_after(*order.node, batch.read);
  } else {
    return false;
  }
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
