// The tree with typed calls, for tests.
#pragma once

#include "index/common/typed.h"
#include "index/sptree/sptree.h"

namespace perdix::detail::index::sptree {

template <class K, class V>
using Tree = TypedEngine<WordTree<K>, K, V>;

}  // namespace perdix::detail::index::sptree
