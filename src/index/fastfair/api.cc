// The public class FastFair: opens the index by name; its calls go to the engine.
#include <perdix/fastfair.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/fastfair/fastfair.h"

namespace perdix {

template <Storable K, Storable V>
FastFair<K, V>::FastFair(const Pool& pool, std::string_view name)
    : OrderedIndex<index::fastfair::Tree<K, V>, K, V>(
          index::open_typed<index::fastfair::Tree<K, V>, K, V>(pool, name,
                                                               index::fastfair::kEngineName, {})) {}

template class PointIndex<index::fastfair::Tree<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<index::fastfair::Tree<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<index::fastfair::Tree<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<index::fastfair::Tree<std::string, std::string>, std::string,
                          std::string>;

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
