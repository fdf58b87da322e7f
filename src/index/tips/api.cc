// The public class Tips: opens the index by name; its calls go to the engine.
#include <perdix/tips.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/tips/tips.h"

namespace perdix {

template <class Plugin, Storable K, Storable V>
Tips<Plugin, K, V>::Tips(const Pool& pool, std::string_view name, const IndexOptions& options)
    : Plugin::template Base<K, V>(
          detail::index::open_typed<typename Plugin::template Engine<K, V>, K, V>(
              pool, name, Plugin::kEngine, options)) {}

template class PointIndex<detail::index::tips::Map<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<detail::index::tips::Map<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::tips::Map<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::tips::Map<std::string, std::string>, std::string,
                          std::string>;

template class PointIndex<detail::index::tips::OrderedMap<std::uint64_t, std::uint64_t>,
                          std::uint64_t, std::uint64_t>;
template class PointIndex<detail::index::tips::OrderedMap<std::uint64_t, std::string>,
                          std::uint64_t, std::string>;
template class PointIndex<detail::index::tips::OrderedMap<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::tips::OrderedMap<std::string, std::string>, std::string,
                          std::string>;

template class OrderedIndex<detail::index::tips::OrderedMap<std::uint64_t, std::uint64_t>,
                            std::uint64_t, std::uint64_t>;
template class OrderedIndex<detail::index::tips::OrderedMap<std::uint64_t, std::string>,
                            std::uint64_t, std::string>;
template class OrderedIndex<detail::index::tips::OrderedMap<std::string, std::uint64_t>,
                            std::string, std::uint64_t>;
template class OrderedIndex<detail::index::tips::OrderedMap<std::string, std::string>, std::string,
                            std::string>;

template class Tips<tips::Hash, std::uint64_t, std::uint64_t>;
template class Tips<tips::Hash, std::uint64_t, std::string>;
template class Tips<tips::Hash, std::string, std::uint64_t>;
template class Tips<tips::Hash, std::string, std::string>;
template class Tips<tips::BTree, std::uint64_t, std::uint64_t>;
template class Tips<tips::BTree, std::uint64_t, std::string>;
template class Tips<tips::BTree, std::string, std::uint64_t>;
template class Tips<tips::BTree, std::string, std::string>;

}  // namespace perdix
