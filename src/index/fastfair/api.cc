// The public class FastFair: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/fastfair.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/common/pairs_engine.h"
#include "index/fastfair/fastfair.h"

namespace perdix {

template <Storable K, Storable V>
FastFair<K, V>::FastFair(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<detail::index::fastfair::Tree<K, V>, K, V>(
          detail::index::open_typed<detail::index::fastfair::Tree<K, V>, K, V>(
              pool, name, detail::index::fastfair::kEngineName, options)) {}

template class PointIndex<detail::index::fastfair::Tree<std::uint64_t, std::uint64_t>,
                          std::uint64_t, std::uint64_t>;
template class PointIndex<detail::index::fastfair::Tree<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::fastfair::Tree<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::fastfair::Tree<std::string, std::string>, std::string,
                          std::string>;

template class OrderedIndex<detail::index::fastfair::Tree<std::uint64_t, std::uint64_t>,
                            std::uint64_t, std::uint64_t>;
template class OrderedIndex<detail::index::fastfair::Tree<std::uint64_t, std::string>,
                            std::uint64_t, std::string>;
template class OrderedIndex<detail::index::fastfair::Tree<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<detail::index::fastfair::Tree<std::string, std::string>, std::string,
                            std::string>;

template class FastFair<std::uint64_t, std::uint64_t>;
template class FastFair<std::uint64_t, std::string>;
template class FastFair<std::string, std::uint64_t>;
template class FastFair<std::string, std::string>;

namespace detail::index::fastfair {
namespace {
constexpr std::array kEngines = {pairs_engine<Tree>(kEngineName, {.ordered = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::fastfair

}  // namespace perdix
