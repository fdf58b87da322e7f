// Ordered iteration (sptree.txt §4.4, Algorithm 1): leaf by leaf, each as it was at one moment.
//
// A leaf's pairs are unsorted. The paper sorts once into a `seqs` array kept in the leaf; here the
// words of one leaf are copied and sorted in the L1 cache, which costs a PM-resident order neither
// lines nor a lock.
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {

/// The pairs of one leaf and its write buffer.
template <class K, class V>
struct Tree<K, V>::ScanBatch : Batch<K, V, kLeafPairs + kBufferPairs> {};

/// Adds the pairs of the leaf and of its write buffer with key >= from. The result counts only if
/// the node's version is validated afterwards. (Algorithm 1 merges the buffer first, under the
/// lock; reading both costs no writes, and the scan stays a reader.)
template <class K, class V>
void Tree<K, V>::collect(const Node& node, Key from, ScanBatch& into) const {
  into.clear();
  const auto add = [&](Word key_word, Word value) {
    const Key key = keys_.view(key_word);
    if (!(key < from)) into.add(key, value);
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

/// As scan_by_batches() wants it: what there is in the leaf of a position.
template <class K, class V>
bool Tree<K, V>::read_batch(ScanBatch& batch, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  const auto high = read_node_from(locate(position), position, [&](const Node& node) {
    collect(node, position, batch);
    return node.high.load(std::memory_order_acquire);
  });
  batch.sort();
  batch.own(pool(), values_, limit);
  pool().require_usable();  // what was read may have been there before a sync failed
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (!NodeBounds::is_open(high)) {
    position = NodeBounds::after(high);
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

}  // namespace perdix::index::sptree
