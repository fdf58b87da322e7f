// The public class SpTree: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/sptree.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/common/pairs_engine.h"
#include "index/sptree/sptree.h"

namespace perdix {

template <Storable K, Storable V>
SpTree<K, V>::SpTree(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<detail::index::sptree::Tree<K, V>, K, V>(
          detail::index::open_typed<detail::index::sptree::Tree<K, V>, K, V>(
              pool, name, detail::index::sptree::kEngineName, options)) {}

template class PointIndex<detail::index::sptree::Tree<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<detail::index::sptree::Tree<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::sptree::Tree<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::sptree::Tree<std::string, std::string>, std::string,
                          std::string>;

template class OrderedIndex<detail::index::sptree::Tree<std::uint64_t, std::uint64_t>,
                            std::uint64_t, std::uint64_t>;
template class OrderedIndex<detail::index::sptree::Tree<std::uint64_t, std::string>, std::uint64_t,
                            std::string>;
template class OrderedIndex<detail::index::sptree::Tree<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<detail::index::sptree::Tree<std::string, std::string>, std::string,
                            std::string>;

template class SpTree<std::uint64_t, std::uint64_t>;
template class SpTree<std::uint64_t, std::string>;
template class SpTree<std::string, std::uint64_t>;
template class SpTree<std::string, std::string>;

namespace detail::index::sptree {
namespace {
constexpr std::array kEngines = {
    pairs_engine<Tree>(kEngineName, {.ordered = true, .buffers = true, .resumes = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::sptree

}  // namespace perdix
