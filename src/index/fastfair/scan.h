// Ordered iteration: leaf by leaf along `next`, each as it was at one moment.
#pragma once

#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

template <class K>
struct WordTree<K>::ScanBatch : Batch<K, kMaxPairs> {};

/// Calls add(entry) for the leaf's pairs with key >= from, until there are more than `limit`. If
/// there are not, sets `following` to the leaf's right neighbour. False if the leaf changed during
/// the call.
template <class K>
template <class Add>
bool WordTree<K>::collect(const Seen& leaf, Key from, std::size_t limit, Seen& following,
                          Add add) const {
  if (buffers_ != nullptr) [[unlikely]]
    return collect_with_buffer(leaf, from, limit, following, add);
  const Node& node = *leaf.node;
  const unsigned count = meta_of(node).count;
  unsigned i = rank(node, {from, true});
  std::size_t added = 0;
  for (Entry entry = i < count ? load_entry(node, i) : Entry{}; i < count && added <= limit;) {
    const Entry next = ++i < count ? load_entry(node, i) : Entry{};
    if (i == count || next.key != entry.key) {  // of two equal keys the right one (F3)
      add(entry);
      ++added;
    }
    entry = next;
  }
  if (added > limit) return leaf.valid();
  Node* right = after(node);
  following = right == nullptr ? Seen{} : look(*right);
  return leaf.valid();
}

/// The pairs of one leaf with key >= from, as they were at one moment.
template <class K>
bool WordTree<K>::take_snapshot(const Seen& leaf, Key from, Snapshot& into) const {
  into.size = 0;
  return collect(leaf, from, kNoLimit, into.following,
                 [&](const Entry& entry) { into.entries[into.size++] = entry; });
}

/// As scan_by_batches() wants it: what there is in the leaf of a position. `leaf` is that one, or
/// one before it that has nothing from the position on, if it is valid, and becomes the next one.
/// So a scan that ends in its first leaf reads no other. It was found under an earlier guard, so it
/// may be freed by now; but as long as its version is the same it is part of the tree, and if it is
/// so under this guard, it stays readable until the guard ends.
template <class K>
bool WordTree<K>::read_batch(ScanBatch& batch, Seen& leaf, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  if (leaf.node == nullptr || !leaf.valid()) leaf = leaf_at_or_before(position);
  const Codec<K> keys = keys_;
  Seen following;
  const auto add = [&](const Entry& entry) { batch.add(keys.view(entry.key), entry.value); };
  for (batch.clear(); !collect(leaf, position, limit, following, add); batch.clear())
    leaf = leaf_at_or_before(position);
  batch.copy_pairs(pool_, codec_, limit);
  pool_.require_usable();  // what was read may have been there before a sync failed
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (following.node != nullptr) {
    leaf = following;
    const Key low = low_of(*leaf.node);
    batch.require_below(pool_, low);
    if (position < low) position = low;
  } else {
    return false;
  }
  return true;
}

template <class K>
void WordTree<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  Seen leaf;
  scan_by_batches<ScanBatch, K>(pool_, from, limit, show,
                                [&](ScanBatch& batch, K& position, std::size_t left) {
                                  return read_batch(batch, leaf, position, left);
                                });
}

}  // namespace perdix::detail::index::fastfair
