// The public class SkipList: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/skiplist.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/common/pairs_engine.h"
#include "index/skiplist/skiplist.h"

namespace perdix {

template <Storable K, Storable V>
SkipList<K, V>::SkipList(const Pool& pool, std::string_view name, const IndexOptions& options)
    : OrderedIndex<detail::index::skiplist::List<K, V>, K, V>(
          detail::index::open_typed<detail::index::skiplist::List<K, V>, K, V>(
              pool, name, detail::index::skiplist::kEngineName, options)) {}

template class PointIndex<detail::index::skiplist::List<std::uint64_t, std::uint64_t>,
                          std::uint64_t, std::uint64_t>;
template class PointIndex<detail::index::skiplist::List<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::skiplist::List<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::skiplist::List<std::string, std::string>, std::string,
                          std::string>;

template class OrderedIndex<detail::index::skiplist::List<std::uint64_t, std::uint64_t>,
                            std::uint64_t, std::uint64_t>;
template class OrderedIndex<detail::index::skiplist::List<std::uint64_t, std::string>,
                            std::uint64_t, std::string>;
template class OrderedIndex<detail::index::skiplist::List<std::string, std::uint64_t>, std::string,
                            std::uint64_t>;
template class OrderedIndex<detail::index::skiplist::List<std::string, std::string>, std::string,
                            std::string>;

template class SkipList<std::uint64_t, std::uint64_t>;
template class SkipList<std::uint64_t, std::string>;
template class SkipList<std::string, std::uint64_t>;
template class SkipList<std::string, std::string>;

namespace detail::index::skiplist {
namespace {
constexpr std::array kEngines = {pairs_engine<List>(kEngineName, {.ordered = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::skiplist

}  // namespace perdix
