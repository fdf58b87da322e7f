// The public class ElimDa: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/papers/elimda.h>

#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/elimda/elimda.h"
#include "index/elimda/options.h"

namespace perdix {

namespace detail::index::elimda {
namespace {
constexpr std::array kEngines = {
    pairs_engine<WordMap, kOptions>(kEngineName, {.resumes = true, .inserts_ahead = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::elimda

template <Storable K, Storable V>
ElimDa<K, V>::ElimDa(const Pool& pool, std::string_view name, const ElimDaOptions& options)
    : PointIndex<K, V>(detail::index::open_words<detail::index::elimda::WordMap<K>,
                                                 detail::index::elimda::kOptions, K>(
          pool, name, detail::index::elimda::kEngineName, kKindOf<V>, options)) {}

template <Storable K, Storable V>
void ElimDa<K, V>::insert_ahead(KeyArgument key, ValueArgument value) {
  PointIndex<K, V>::insert_ahead(key, value);
}

template class ElimDa<std::uint64_t, std::uint64_t>;
template class ElimDa<std::uint64_t, std::string>;
template class ElimDa<std::string, std::uint64_t>;
template class ElimDa<std::string, std::string>;

}  // namespace perdix
