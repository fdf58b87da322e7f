// The public class NbTree: opens the index by name; its calls go to the engine.
#include <perdix/nbtree.h>

#include "index/common/ordered_index.h"
#include "index/nbtree/nbtree.h"
#include "pool/pool_core.h"

namespace perdix {

template <Storable K, Storable V>
NbTree<K, V>::NbTree(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<index::nbtree::Tree<K, V>, K, V>(std::make_unique<index::nbtree::Tree<K, V>>(
          pool.core()->open_index(name, index::nbtree::kEngineName, kKindOf<K>, kKindOf<V>),
          options)) {}

template class OrderedIndex<index::nbtree::Tree<std::uint64_t, std::uint64_t>, std::uint64_t,
                            std::uint64_t>;
template class OrderedIndex<index::nbtree::Tree<std::uint64_t, std::string>, std::uint64_t,
                            std::string>;
template class OrderedIndex<index::nbtree::Tree<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<index::nbtree::Tree<std::string, std::string>, std::string,
                            std::string>;

template class NbTree<std::uint64_t, std::uint64_t>;
template class NbTree<std::uint64_t, std::string>;
template class NbTree<std::string, std::uint64_t>;
template class NbTree<std::string, std::string>;

}  // namespace perdix
