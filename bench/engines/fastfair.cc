#include <vector>

#include <perdix/fastfair.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using FastFairMap = PerdixMap<FastFair, K, V>;

}  // namespace

std::vector<Engine> fastfair_engines() {
  return {{"fastfair", "perdix::FastFair, B+-tree in a pool", true, open_store<FastFairMap>,
           pool_settings, calls_of<FastFairMap>()}};
}

}  // namespace perdix::bench
