// The public class SkipList: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/papers/skiplist.h>

#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/skiplist/options.h"
#include "index/skiplist/skiplist.h"

namespace perdix {

namespace detail::index::skiplist {
namespace {
constexpr std::array kEngines = {pairs_engine<WordList, kOptions>(kEngineName, {.ordered = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::skiplist

template <Storable K, Storable V>
SkipList<K, V>::SkipList(const Pool& pool, std::string_view name, const SkipListOptions& options)
    : OrderedIndex<K, V>(detail::index::open_words<detail::index::skiplist::WordList<K>,
                                                   detail::index::skiplist::kOptions, K>(
          pool, name, detail::index::skiplist::kEngineName, kKindOf<V>, options)) {}

template class SkipList<std::uint64_t, std::uint64_t>;
template class SkipList<std::uint64_t, std::string>;
template class SkipList<std::string, std::uint64_t>;
template class SkipList<std::string, std::string>;

}  // namespace perdix
