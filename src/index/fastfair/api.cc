// The public class FastFair: opens the index by name; its calls go to the engine.
#include <perdix/fastfair.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/fastfair/fastfair.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix {

namespace {

template <Storable K, Storable V>
std::unique_ptr<index::fastfair::Tree<K, V>> open(const Pool& pool, std::string_view name) {
  return pool::as_errors([&] {
    return index::open_or_remove(
        *pool.core(),
        {std::string(name), std::string(index::fastfair::kEngineName), kKindOf<K>, kKindOf<V>},
        [&](std::uint64_t& root) { index::fastfair::destroy<K, V>(*pool.core(), root); },
        [&](pool::IndexHandle handle) {
          return std::make_unique<index::fastfair::Tree<K, V>>(std::move(handle));
        });
  });
}

}  // namespace

template <Storable K, Storable V>
FastFair<K, V>::FastFair(const Pool& pool, std::string_view name)
    : OrderedIndex<index::fastfair::Tree<K, V>, K, V>(open<K, V>(pool, name)) {}

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
