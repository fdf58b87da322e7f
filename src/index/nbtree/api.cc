// The public class NbTree: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/nbtree.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/common/pairs_engine.h"
#include "index/nbtree/nbtree.h"

namespace perdix {

template <Storable K, Storable V>
NbTree<K, V>::NbTree(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<detail::index::nbtree::Tree<K, V>, K, V>(
          detail::index::open_typed<detail::index::nbtree::Tree<K, V>, K, V>(
              pool, name, detail::index::nbtree::kEngineName, options)) {}

template class PointIndex<detail::index::nbtree::Tree<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<detail::index::nbtree::Tree<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::nbtree::Tree<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::nbtree::Tree<std::string, std::string>, std::string,
                          std::string>;

template class OrderedIndex<detail::index::nbtree::Tree<std::uint64_t, std::uint64_t>,
                            std::uint64_t, std::uint64_t>;
template class OrderedIndex<detail::index::nbtree::Tree<std::uint64_t, std::string>, std::uint64_t,
                            std::string>;
template class OrderedIndex<detail::index::nbtree::Tree<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<detail::index::nbtree::Tree<std::string, std::string>, std::string,
                            std::string>;

template class NbTree<std::uint64_t, std::uint64_t>;
template class NbTree<std::uint64_t, std::string>;
template class NbTree<std::string, std::uint64_t>;
template class NbTree<std::string, std::string>;

namespace detail::index::nbtree {
namespace {
constexpr std::array kEngines = {
    pairs_engine<Tree>(kEngineName, {.ordered = true, .resumes = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::nbtree

}  // namespace perdix
