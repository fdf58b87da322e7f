#include <vector>

#include <perdix/skiplist.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using SkipListMap = PerdixMap<SkipList, K, V>;

}  // namespace

std::vector<Engine> skiplist_engines() {
  return {{"skiplist", "perdix::SkipList, skip list in a pool", true, open_store<SkipListMap>,
           pool_settings, calls_of<SkipListMap>()}};
}

}  // namespace perdix::bench
