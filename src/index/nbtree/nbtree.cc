#include "index/nbtree/nbtree.h"

#include "index/nbtree/operations.h"

namespace perdix::detail::index::nbtree {

template class WordTree<std::uint64_t>;
template class WordTree<std::string>;

}  // namespace perdix::detail::index::nbtree
