#include <cstdint>
#include <vector>

#include <perdix/skiplist.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using SkipListMap = PerdixMap<SkipList, K, V>;

IndexOptions cached(std::uint64_t dram_budget) {
  IndexOptions options;
  options.dram_budget = dram_budget;
  options.technique = Technique::boc;
  return options;
}

template <class K, class V>
class CachedSkipListMap : public PerdixMap<SkipList, K, V> {
 public:
  explicit CachedSkipListMap(const Setup& setup)
      : PerdixMap<SkipList, K, V>(setup, cached(setup.dram_budget)) {}
};

}  // namespace

std::vector<Engine> skiplist_engines() {
  return {{"skiplist", "perdix::SkipList, skip list in a pool", true, open_store<SkipListMap>,
           pool_settings, calls_of<SkipListMap>()},
          {"skiplist+boc", "the same, with the way to tall nodes in DRAM", true,
           open_store<CachedSkipListMap>, pool_settings, calls_of<CachedSkipListMap>()}};
}

}  // namespace perdix::bench
