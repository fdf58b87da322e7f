// Ordered iteration, which the paper has not: leaf by leaf. A leaf's entries are unsorted; those of
// one leaf are copied and sorted in the L1 cache.
//
// Each pair that is shown was there at a moment while its leaf was read, and each key that is
// passed over was not: as for a lookup, see durability/nbtree.md. Nothing is shown before it is
// durable.
#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {

template <class K, class V>
struct Tree<K, V>::ScanBatch : Batch<K, V, kCapacity> {};

/// Adds the pairs of a leaf with key >= from. False if the leaf was replaced meanwhile.
template <class K, class V>
bool Tree<K, V>::collect(const Place& place, Key from, ScanBatch& into) const {
  const Leaf<K>& leaf = *place.leaf;
  into.clear();
  const std::uint64_t slots = leaf.visible_slots();
  for (std::uint64_t left = slots; left != 0; left &= left - 1) {
    const Entry& entry = leaf.block().entries[__builtin_ctzll(left)];
    const Word word = pm::load(entry.key);
    if (Code::state(word) == State::special) continue;
    const Key key = keys_.view(Code::key(word, from));  // which the leaf's range has
    if (!(key < from)) into.add(key, pm::load(entry.value));
  }
  settle_doubts(leaf, slots);
  return place.current();
}

/// As scan_by_batches() wants it: what there is in the leaf of a position.
template <class K, class V>
bool Tree<K, V>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  Place place = locate(position);
  while (!collect(place, position, batch)) place = locate_again(position);
  batch.sort();
  batch.own(pool(), values_, limit);
  pool().require_usable();  // what was read may have been there before a sync failed
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (place.leaf->next() != nullptr) {
    position = place.leaf->end();
    batch.require_below(pool(), position);
  } else {
    return false;
  }
  return true;
}

template <class K, class V>
void Tree<K, V>::scan(Key from, Visitor<K, V> visit, std::size_t limit) const {
  scan_by_batches<ScanBatch, K, V>(pool(), from, visit, limit,
                                   [this](ScanBatch& batch, K& position, std::size_t left) {
                                     return read_batch(batch, position, left);
                                   });
}

template void Tree<std::uint64_t, std::uint64_t>::scan(Key, Visitor<std::uint64_t, std::uint64_t>,
                                                       std::size_t) const;
template void Tree<std::uint64_t, std::string>::scan(Key, Visitor<std::uint64_t, std::string>,
                                                     std::size_t) const;
template void Tree<std::string, std::uint64_t>::scan(Key, Visitor<std::string, std::uint64_t>,
                                                     std::size_t) const;
template void Tree<std::string, std::string>::scan(Key, Visitor<std::string, std::string>,
                                                   std::size_t) const;

}  // namespace perdix::index::nbtree
