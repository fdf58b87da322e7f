#include <vector>

#include <perdix/fastfair.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

IndexOptions index_options(const Setup& setup, Technique technique) {
  IndexOptions options;
  options.technique = technique;
  options.dram_budget = technique == Technique::none ? 0 : setup.dram_budget;
  return options;
}

template <class K, class V, Technique kTechnique>
class TechniqueMap : public PerdixMap<FastFair, K, V> {
 public:
  explicit TechniqueMap(const Setup& setup)
      : PerdixMap<FastFair, K, V>(setup, index_options(setup, kTechnique)) {}
};

template <class K, class V>
using FastFairMap = TechniqueMap<K, V, Technique::none>;
template <class K, class V>
using BufferedFastFairMap = TechniqueMap<K, V, Technique::b>;
template <class K, class V>
using OutOfPlaceFastFairMap = TechniqueMap<K, V, Technique::bo>;
template <class K, class V>
using CachedFastFairMap = TechniqueMap<K, V, Technique::boc>;

}  // namespace

std::vector<Engine> fastfair_engines() {
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
