#include <vector>

#include <perdix/papers/fastfair.h>

#include "systems/systems.h"
#include "systems/with_technique.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using FastFairMap = WithTechnique<PerdixMap<FastFair, K, V>, Technique::none>;
template <class K, class V>
using BufferedFastFairMap = WithTechnique<PerdixMap<FastFair, K, V>, Technique::b>;
template <class K, class V>
using OutOfPlaceFastFairMap = WithTechnique<PerdixMap<FastFair, K, V>, Technique::bo>;
template <class K, class V>
using CachedFastFairMap = WithTechnique<PerdixMap<FastFair, K, V>, Technique::boc>;

}  // namespace

std::vector<System> fastfair_systems() {
  return {{"fastfair", "perdix::FastFair, B+-tree in a pool", true, open_store<FastFairMap>,
           pool_settings, calls_of<FastFairMap>()},
          {"fastfair+b", "perdix::FastFair with write buffers in DRAM and a log", true,
           open_store<BufferedFastFairMap>, pool_settings, calls_of<BufferedFastFairMap>()},
          {"fastfair+bo", "the same, and buffers are merged into new leaves", true,
           open_store<OutOfPlaceFastFairMap>, pool_settings, calls_of<OutOfPlaceFastFairMap>()},
          {"fastfair+boc", "the same, and the way to leaves is kept in DRAM", true,
           open_store<CachedFastFairMap>, pool_settings, calls_of<CachedFastFairMap>()}};
}

}  // namespace perdix::bench
