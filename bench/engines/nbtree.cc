#include <vector>

#include <perdix/nbtree.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using NbTreeMap = Resuming<PerdixMap<NbTree, K, V>>;

}  // namespace

std::vector<Engine> nbtree_engines() {
  return {{"nbtree", "perdix::NbTree, lock-free B+-tree, leaves in a pool", true,
           open_store<NbTreeMap>, pool_settings, calls_of<NbTreeMap>()}};
}

}  // namespace perdix::bench
