// The public class SpTree: opens the index by name; its calls go to the engine.
#include <array>

#include <perdix/sptree.h>

#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/sptree/options.h"
#include "index/sptree/sptree.h"

namespace perdix {

namespace detail::index::sptree {
namespace {
constexpr std::array kEngines = {
    pairs_engine<WordTree, kOptions>(kEngineName, {.ordered = true, .resumes = true})};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::sptree

template <Storable K, Storable V>
SpTree<K, V>::SpTree(const Pool& pool, std::string_view name, const SpTreeOptions& options)
    : OrderedIndex<K, V>(detail::index::open_words<detail::index::sptree::WordTree<K>,
                                                   detail::index::sptree::kOptions, K>(
          pool, name, detail::index::sptree::kEngineName, kKindOf<V>, options)) {}

template class SpTree<std::uint64_t, std::uint64_t>;
template class SpTree<std::uint64_t, std::string>;
template class SpTree<std::string, std::uint64_t>;
template class SpTree<std::string, std::string>;

}  // namespace perdix
