// The public class FastFair: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/papers/fastfair.h>

#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/fastfair/fastfair.h"
#include "index/fastfair/options.h"

namespace perdix {

namespace detail::index::fastfair {
namespace {
constexpr std::array kEngines = {pairs_engine<WordTree, kOptions>(kEngineName, {.ordered = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::fastfair

template <Storable K, Storable V>
FastFair<K, V>::FastFair(const Pool& pool, std::string_view name, const FastFairOptions& options)
    : OrderedIndex<K, V>(detail::index::open_words<detail::index::fastfair::WordTree<K>,
                                                   detail::index::fastfair::kOptions, K>(
          pool, name, detail::index::fastfair::kEngineName, kKindOf<V>, options)) {}

template class FastFair<std::uint64_t, std::uint64_t>;
template class FastFair<std::uint64_t, std::string>;
template class FastFair<std::string, std::uint64_t>;
template class FastFair<std::string, std::string>;

}  // namespace perdix
