#include <map>
#include <vector>

#include "systems/systems.h"
#include "systems/volatile_map.h"

namespace perdix::bench {
namespace {

template <class K, class V, class Less>
using Map = std::map<K, V, Less>;

}  // namespace

std::vector<System> std_map_systems() {
  return {MapSystem<Map>::system("std_map", "std::map, volatile")};
}

}  // namespace perdix::bench
