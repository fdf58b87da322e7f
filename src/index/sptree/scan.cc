// Ordered iteration (sptree.txt §4.4, Algorithm 1): leaf by leaf, each as it was at one moment.
//
// A leaf's pairs are unsorted. The paper sorts once into a `seqs` array kept in the leaf; here the
// words of one leaf are copied and sorted in the L1 cache, which costs a PM-resident order neither
// lines nor a lock.
#include <algorithm>
#include <array>

#include "index/sptree/sptree.h"

namespace perdix::index::sptree {

/// The pairs of one leaf and the end of its range, read under one version.
template <class K, class V>
struct Tree<K, V>::Snapshot {
  struct Entry {
    Key key;
    Word value;
    friend bool operator<(const Entry& a, const Entry& b) { return a.key < b.key; }
  };

  std::array<Entry, kLeafPairs + kBufferPairs> entries;
  unsigned size = 0;
  typename NodeBounds::High high{};
};

/// Copies the pairs of the leaf and of its write buffer with key >= from. The result counts only if
/// the node's version is validated afterwards. (Algorithm 1 merges the buffer first, under the
/// lock; reading both costs no writes, and the scan stays a reader.)
template <class K, class V>
void Tree<K, V>::collect(const Node& node, Key from, Snapshot& into) const {
  into.size = 0;
  into.high = node.high.load(std::memory_order_acquire);
  const auto add = [&](Word key_word, Word value) {
    const Key key = keys_.view(key_word);
    if (!(key < from)) into.entries[into.size++] = {key, value};
  };
  for (const unsigned slot : node.slots()) {
    const Pair& pair = pair_at(*node.leaf(), slot);
    add(pm::load(pair.key), pm::load(pair.value));
  }
  if (const Buffer* buffer = buffer_of(node)) {
    const unsigned count = std::min(buffer->size(), kBufferPairs);
    for (unsigned i = 0; i < count; ++i) add(buffer->key(i), buffer->value(i));
  }
}

template <class K, class V>
void Tree<K, V>::scan(Key from, Visitor<K, V> visit) const {
  K position(from);
  for (Snapshot snapshot;;) {
    // One guard a leaf: strings stay where they are while they are shown, and a long scan doesn't
    // hold up reclamation.
    const epoch::Guard guard;
    read_node_from(locate(position), position, [&](const Node& node) {
      collect(node, position, snapshot);
      return true;
    });
    std::sort(snapshot.entries.begin(), snapshot.entries.begin() + snapshot.size);
    for (unsigned i = 0; i < snapshot.size; ++i) {
      const auto& entry = snapshot.entries[i];
      if (!visit(entry.key, values_.view(entry.value))) return;
    }
    if (NodeBounds::is_open(snapshot.high)) return;
    position = NodeBounds::after(snapshot.high);
  }
}

template void Tree<std::uint64_t, std::uint64_t>::scan(Key,
                                                       Visitor<std::uint64_t, std::uint64_t>) const;
template void Tree<std::uint64_t, std::string>::scan(Key,
                                                     Visitor<std::uint64_t, std::string>) const;
template void Tree<std::string, std::uint64_t>::scan(Key,
                                                     Visitor<std::string, std::uint64_t>) const;
template void Tree<std::string, std::string>::scan(Key, Visitor<std::string, std::string>) const;

}  // namespace perdix::index::sptree
