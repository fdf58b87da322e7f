// Ordered iteration, which the paper has not: leaf by leaf. A leaf's entries are unsorted; those of
// one leaf are copied and sorted in the L1 cache.
//
// Each pair that is shown was there at a moment while its leaf was read, and each key that is
// passed over was not: as for a lookup, see durability/nbtree.md. Nothing is shown before it is
// durable.
#include <algorithm>

#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {

template <class K, class V>
struct Tree<K, V>::Snapshot {
  struct Pair {
    Key key;
    Word value;
    friend bool operator<(const Pair& a, const Pair& b) { return a.key < b.key; }
  };

  std::array<Pair, kCapacity> pairs;
  unsigned size = 0;
  std::uint64_t slots = 0;  // that were looked at
};

/// Copies the pairs of a leaf with key >= from. False if the leaf was replaced meanwhile.
template <class K, class V>
bool Tree<K, V>::collect(const Place& place, Key from, Snapshot& into) const {
  const Leaf<K>& leaf = *place.leaf;
  into.size = 0;
  into.slots = leaf.visible_slots();
  for (std::uint64_t left = into.slots; left != 0; left &= left - 1) {
    const Entry& entry = leaf.block().entries[__builtin_ctzll(left)];
    const Word word = pm::load(entry.key);
    if (Code::state(word) == State::special) continue;
    const Key key = keys_.view(Code::key(word, from));  // which the leaf's range has
    if (!(key < from)) into.pairs[into.size++] = {key, pm::load(entry.value)};
  }
  settle_doubts(leaf, into.slots);
  return place.current();
}

template <class K, class V>
void Tree<K, V>::scan(Key from, Visitor<K, V> visit) const {
  K position(from);
  for (Snapshot snapshot;;) {
    // One guard a leaf: strings stay where they are while they are shown, and a long scan doesn't
    // hold up reclamation.
    const epoch::Guard guard;
    const Place place = locate(position);
    if (!collect(place, position, snapshot)) continue;
    std::sort(snapshot.pairs.begin(), snapshot.pairs.begin() + snapshot.size);
    for (unsigned i = 0; i < snapshot.size; ++i) {
      const auto& pair = snapshot.pairs[i];
      if (!visit(pair.key, values_.view(pair.value))) return;
    }
    if (place.leaf->next() == nullptr) return;
    position = place.leaf->end();
  }
}

template void Tree<std::uint64_t, std::uint64_t>::scan(Key,
                                                       Visitor<std::uint64_t, std::uint64_t>) const;
template void Tree<std::uint64_t, std::string>::scan(Key,
                                                     Visitor<std::uint64_t, std::string>) const;
template void Tree<std::string, std::uint64_t>::scan(Key,
                                                     Visitor<std::string, std::uint64_t>) const;
template void Tree<std::string, std::string>::scan(Key, Visitor<std::string, std::string>) const;

}  // namespace perdix::index::nbtree
