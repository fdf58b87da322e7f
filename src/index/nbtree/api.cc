// The public class NbTree: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/papers/nbtree.h>

#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/options.h"

namespace perdix {

namespace detail::index::nbtree {
namespace {

constexpr std::array kEngines = {
    pairs_engine<WordTree, kOptions>(kEngineName, {.ordered = true, .resumes = true})};

}  // namespace
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::nbtree

template <Storable K, Storable V>
NbTree<K, V>::NbTree(const Pool& pool, std::string_view name, const NbTreeOptions& options)
    : OrderedIndex<K, V>(detail::index::open_words<detail::index::nbtree::WordTree<K>,
                                                   detail::index::nbtree::kOptions, K>(
          pool, name, detail::index::nbtree::kEngineName, kKindOf<V>, options)) {}

template class NbTree<std::uint64_t, std::uint64_t>;
template class NbTree<std::uint64_t, std::string>;
template class NbTree<std::string, std::uint64_t>;
template class NbTree<std::string, std::string>;

}  // namespace perdix
