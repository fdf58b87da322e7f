// The public class Cceh: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/cceh.h>

#include "index/cceh/cceh.h"
#include "index/common/open_or_remove.h"
#include "index/common/pairs_engine.h"
#include "index/common/point_index.h"

namespace perdix {

template <Storable K, Storable V>
Cceh<K, V>::Cceh(const Pool& pool, std::string_view name, const IndexOptions& options)
    : PointIndex<detail::index::cceh::Map<K, V>, K, V>(
          detail::index::open_typed<detail::index::cceh::Map<K, V>, K, V>(
              pool, name, detail::index::cceh::kEngineName, options)) {}

template class PointIndex<detail::index::cceh::Map<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<detail::index::cceh::Map<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::cceh::Map<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::cceh::Map<std::string, std::string>, std::string,
                          std::string>;

template class Cceh<std::uint64_t, std::uint64_t>;
template class Cceh<std::uint64_t, std::string>;
template class Cceh<std::string, std::uint64_t>;
template class Cceh<std::string, std::string>;

namespace detail::index::cceh {
namespace {
constexpr std::array kEngines = {pairs_engine<Map>(kEngineName, {})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::cceh

}  // namespace perdix
