// The public class Cceh: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/cceh.h>

#include "index/cceh/cceh.h"
#include "index/cceh/options.h"
#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"

namespace perdix {

namespace detail::index::cceh {
namespace {
constexpr std::array kEngines = {pairs_engine<WordTable, kOptions>(kEngineName, {})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::cceh

template <Storable K, Storable V>
Cceh<K, V>::Cceh(const Pool& pool, std::string_view name, const CcehOptions& options)
    : PointIndex<K, V>(detail::index::open_words<detail::index::cceh::WordTable<K>,
                                                 detail::index::cceh::kOptions, K>(
          pool, name, detail::index::cceh::kEngineName, kKindOf<V>, options)) {}

template class Cceh<std::uint64_t, std::uint64_t>;
template class Cceh<std::uint64_t, std::string>;
template class Cceh<std::string, std::uint64_t>;
template class Cceh<std::string, std::string>;

}  // namespace perdix
