// The public class FastFair: opens the index by name; its calls go to the engine.
#include <perdix/fastfair.h>

#include "index/common/ordered_index.h"
#include "index/fastfair/fastfair.h"
#include "pool/pool_core.h"

namespace perdix {

template <Storable K, Storable V>
FastFair<K, V>::FastFair(const Pool& pool, std::string_view name)
    : OrderedIndex<index::fastfair::Tree<K, V>, K, V>(std::make_unique<index::fastfair::Tree<K, V>>(
          pool.core()->open_index(name, index::fastfair::kEngineName, kKindOf<K>, kKindOf<V>))) {}

template class OrderedIndex<index::fastfair::Tree<std::uint64_t, std::uint64_t>, std::uint64_t,
                            std::uint64_t>;
template class OrderedIndex<index::fastfair::Tree<std::uint64_t, std::string>, std::uint64_t,
                            std::string>;
template class OrderedIndex<index::fastfair::Tree<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<index::fastfair::Tree<std::string, std::string>, std::string,
                            std::string>;

template class FastFair<std::uint64_t, std::uint64_t>;
template class FastFair<std::uint64_t, std::string>;
template class FastFair<std::string, std::uint64_t>;
template class FastFair<std::string, std::string>;

}  // namespace perdix
