// The public classes of Tips: open the index by name; its calls go to the engine.
#include <perdix/tips.h>

#include "index/common/open_or_remove.h"
#include "index/common/ordered_index.h"
#include "index/tips/tips.h"

namespace perdix {

template <class Order, Storable K, Storable V>
tips::Opened<Order, K, V>::Opened(const Pool& pool, std::string_view name, std::string_view engine,
                                  const IndexOptions& options)
    : Order::template Base<K, V>(
          detail::index::open_typed<typename Order::template Engine<K, V>, K, V>(pool, name, engine,
                                                                                 options)) {}

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

template struct tips::Opened<tips::Unordered, std::uint64_t, std::uint64_t>;
template struct tips::Opened<tips::Unordered, std::uint64_t, std::string>;
template struct tips::Opened<tips::Unordered, std::string, std::uint64_t>;
template struct tips::Opened<tips::Unordered, std::string, std::string>;
template struct tips::Opened<tips::Ordered, std::uint64_t, std::uint64_t>;
template struct tips::Opened<tips::Ordered, std::uint64_t, std::string>;
template struct tips::Opened<tips::Ordered, std::string, std::uint64_t>;
template struct tips::Opened<tips::Ordered, std::string, std::string>;

}  // namespace perdix
