#include <vector>

#include <absl/container/btree_map.h>

#include "systems/systems.h"
#include "systems/volatile_map.h"

namespace perdix::bench {
namespace {

template <class K, class V, class Less>
using Map = absl::btree_map<K, V, Less>;

}  // namespace

std::vector<System> btree_map_systems() {
  return {MapSystem<Map>::system("btree_map", "absl::btree_map, volatile")};
}

}  // namespace perdix::bench
