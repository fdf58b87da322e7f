// The public class NbTree: opens the index by name; its calls go to the engine.
#include <perdix/nbtree.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/nbtree/nbtree.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix {

namespace {

template <Storable K, Storable V>
std::unique_ptr<index::nbtree::Tree<K, V>> open(const Pool& pool, std::string_view name,
                                                const IndexOptions& options) {
  return pool::as_errors([&] {
    return index::open_or_remove(
        *pool.core(),
        {std::string(name), std::string(index::nbtree::kEngineName), kKindOf<K>, kKindOf<V>},
        [&](std::uint64_t& root) { index::nbtree::destroy<K, V>(*pool.core(), root); },
        [&](pool::IndexHandle handle) {
          return std::make_unique<index::nbtree::Tree<K, V>>(std::move(handle), options);
        });
  });
}

}  // namespace

template <Storable K, Storable V>
NbTree<K, V>::NbTree(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<index::nbtree::Tree<K, V>, K, V>(open<K, V>(pool, name, options)) {}

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
