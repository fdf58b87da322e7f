#include <vector>

#include <perdix/papers/nbtree.h>

#include "systems/perdix_map.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using NbTreeMap = Resuming<PerdixMap<NbTree, K, V>>;

}  // namespace

std::vector<System> nbtree_systems() {
  return {{"nbtree", "perdix::NbTree, lock-free B+-tree, leaves in a pool", true,
           open_store<NbTreeMap>, pool_settings, calls_of<NbTreeMap>()}};
}

}  // namespace perdix::bench
