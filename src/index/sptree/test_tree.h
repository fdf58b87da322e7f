// The tree with typed calls, for tests, and what they look for inside.
#pragma once

#include "epoch/guard.h"
#include "index/common/typed.h"
#include "index/sptree/sptree.h"

namespace perdix::detail::index::sptree {

/// For moments without writers.
template <class K>
class WatchedTree : public WordTree<K> {
 public:
  using Key = View<K>;
  using WordTree<K>::WordTree;

  /// Whether a hint leads to the key's node.
  bool hinted(Key key) const {
    const epoch::Guard guard;
    return parts().hints.of(key) == parts().top.locate(key);
  }

  /// How often a lookup of the key would go from a node to the next one.
  unsigned steps_right(Key key) const {
    (void)this->size();  // all leaves are warm
    const epoch::Guard guard;
    unsigned steps = 0;
    for (const auto* node = parts().top.locate(key); !node->covers(key); ++steps)
      node = parts().nodes.next_of(*node);
    return steps;
  }

  /// Whether a scan would find the order of the pairs in the key's leaf, and need not sort.
  bool order_kept(Key key) const {
    const epoch::Guard guard;
    return this->search().read(key, Codec<K>::hash16(key), [&](const Mnode<K>& node) {
      LeafOrder<K> order;
      parts().leaf_orders.read(node, order);
      return order.kept;
    });
  }

 private:
  using WordTree<K>::parts;
};

template <class K, class V>
using Tree = TypedEngine<WatchedTree<K>, K, V>;

}  // namespace perdix::detail::index::sptree
