// The public class SpTree: opens the index by name; its calls go to the engine.
#include <perdix/sptree.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/sptree/sptree.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix {

namespace {

template <Storable K, Storable V>
std::unique_ptr<index::sptree::Tree<K, V>> open(const Pool& pool, std::string_view name,
                                                const IndexOptions& options) {
  return pool::as_errors([&] {
    return index::open_or_remove(
        *pool.core(),
        {std::string(name), std::string(index::sptree::kEngineName), kKindOf<K>, kKindOf<V>},
        [&](std::uint64_t& root) { index::sptree::destroy<K, V>(*pool.core(), root); },
        [&](pool::IndexHandle handle) {
          return std::make_unique<index::sptree::Tree<K, V>>(std::move(handle), options);
        });
  });
}

}  // namespace

template <Storable K, Storable V>
SpTree<K, V>::SpTree(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<index::sptree::Tree<K, V>, K, V>(open<K, V>(pool, name, options)) {}

template class OrderedIndex<index::sptree::Tree<std::uint64_t, std::uint64_t>, std::uint64_t,
                            std::uint64_t>;
template class OrderedIndex<index::sptree::Tree<std::uint64_t, std::string>, std::uint64_t,
                            std::string>;
template class OrderedIndex<index::sptree::Tree<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<index::sptree::Tree<std::string, std::string>, std::string,
                            std::string>;

template class SpTree<std::uint64_t, std::uint64_t>;
template class SpTree<std::uint64_t, std::string>;
template class SpTree<std::string, std::uint64_t>;
template class SpTree<std::string, std::string>;

}  // namespace perdix
