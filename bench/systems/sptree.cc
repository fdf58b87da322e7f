#include <vector>

#include <perdix/sptree.h>

#include "systems/perdix_map.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using SpTreeMap = Resuming<PerdixMap<SpTree, K, V>>;

template <class K, class V>
class BufferedSpTreeMap : public SpTreeMap<K, V> {
 public:
  explicit BufferedSpTreeMap(const Setup& setup)
      : SpTreeMap<K, V>(setup, SpTreeOptions{.dram_budget = setup.dram_budget}) {}
};

}  // namespace

std::vector<System> sptree_systems() {
  return {{"sptree", "perdix::SpTree, ordered index in a pool", true, open_store<SpTreeMap>,
           pool_settings, calls_of<SpTreeMap>()},
          {"sptree+buffers", "perdix::SpTree with write buffers in DRAM and a log", true,
           open_store<BufferedSpTreeMap>, pool_settings, calls_of<BufferedSpTreeMap>()}};
}

}  // namespace perdix::bench
