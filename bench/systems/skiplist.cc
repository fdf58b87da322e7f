#include <cstdint>
#include <vector>

#include <perdix/papers/skiplist.h>

#include "systems/systems.h"
#include "systems/with_technique.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using SkipListMap = WithTechnique<PerdixMap<SkipList, K, V>, Technique::none>;
template <class K, class V>
using BufferedSkipListMap = WithTechnique<PerdixMap<SkipList, K, V>, Technique::b>;
template <class K, class V>
using OutOfPlaceSkipListMap = WithTechnique<PerdixMap<SkipList, K, V>, Technique::bo>;
template <class K, class V>
using CachedSkipListMap = WithTechnique<PerdixMap<SkipList, K, V>, Technique::boc>;

}  // namespace

std::vector<System> skiplist_systems() {
  return {{"skiplist", "perdix::SkipList, skip list in a pool", true, open_store<SkipListMap>,
           pool_settings, calls_of<SkipListMap>()},
          {"skiplist+b", "perdix::SkipList with write buffers in DRAM and a log", true,
           open_store<BufferedSkipListMap>, pool_settings, calls_of<BufferedSkipListMap>()},
          {"skiplist+bo", "the same: nodes are always written out of place", true,
           open_store<OutOfPlaceSkipListMap>, pool_settings, calls_of<OutOfPlaceSkipListMap>()},
          {"skiplist+boc", "the same, and the way to tall nodes is kept in DRAM", true,
           open_store<CachedSkipListMap>, pool_settings, calls_of<CachedSkipListMap>()}};
}

}  // namespace perdix::bench
