// The public class ElimDa: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/elimda.h>

#include "index/common/open_or_remove.h"
#include "index/common/pairs_engine.h"
#include "index/common/point_index.h"
#include "index/elimda/elimda.h"

namespace perdix {

template <Storable K, Storable V>
ElimDa<K, V>::ElimDa(const Pool& pool, std::string_view name, const IndexOptions& options)
    : PointIndex<detail::index::elimda::Map<K, V>, K, V>(
          detail::index::open_typed<detail::index::elimda::Map<K, V>, K, V>(
              pool, name, detail::index::elimda::kEngineName, options)) {}

template <Storable K, Storable V>
void ElimDa<K, V>::insert_ahead(KeyArgument key, ValueArgument value) {
  this->run_write(key,
                  [&](detail::index::elimda::Map<K, V>& map) { map.insert_ahead(key, value); });
}

template class PointIndex<detail::index::elimda::Map<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<detail::index::elimda::Map<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<detail::index::elimda::Map<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<detail::index::elimda::Map<std::string, std::string>, std::string,
                          std::string>;

template class ElimDa<std::uint64_t, std::uint64_t>;
template class ElimDa<std::uint64_t, std::string>;
template class ElimDa<std::string, std::uint64_t>;
template class ElimDa<std::string, std::string>;

namespace detail::index::elimda {
namespace {
constexpr std::array kEngines = {
    pairs_engine<Map>(kEngineName, {.resumes = true, .inserts_ahead = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::elimda

}  // namespace perdix
