// The public class ElimDa: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/elimda.h>

#include "index/common/pairs_engine.h"
#include "index/elimda/elimda.h"

namespace perdix {

namespace detail::index::elimda {
namespace {
constexpr std::array kEngines = {
    pairs_engine<WordMap>(kEngineName, {.resumes = true, .inserts_ahead = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::elimda

template <Storable K, Storable V>
ElimDa<K, V>::ElimDa(const Pool& pool, std::string_view name, const IndexOptions& options)
    : PointIndex<K, V>(pool, name, detail::index::elimda::kEngines[0], options) {}

template <Storable K, Storable V>
void ElimDa<K, V>::insert_ahead(KeyArgument key, ValueArgument value) {
  PointIndex<K, V>::insert_ahead(key, value);
}

template class ElimDa<std::uint64_t, std::uint64_t>;
template class ElimDa<std::uint64_t, std::string>;
template class ElimDa<std::string, std::uint64_t>;
template class ElimDa<std::string, std::string>;

}  // namespace perdix
