#include <vector>

#include <perdix/cceh.h>

#include "systems/systems.h"
#include "systems/with_technique.h"

namespace perdix::bench {
namespace {

CcehOptions cceh_options(const Setup& setup, Technique technique) {
  auto options = technique_options<CcehOptions>(setup, technique);
  options.segment_bytes =
      static_cast<std::uint32_t>(setup.parameter("segment_bytes", options.segment_bytes));
  options.lazy_depth =
      static_cast<std::uint32_t>(setup.parameter("lazy_depth", options.lazy_depth));
  return options;
}

template <class K, class V, Technique kTechnique>
class CcehForm : public PerdixMap<Cceh, K, V> {
 public:
  explicit CcehForm(const Setup& setup)
      : PerdixMap<Cceh, K, V>(setup, cceh_options(setup, kTechnique)) {}

  OwnFootprint footprint() const {
    const IndexStats stats = this->index().stats();
    return {stats.dram_bytes, stats.pm_bytes, stats.load_factor};
  }
};

template <class K, class V>
using CcehMap = CcehForm<K, V, Technique::none>;
template <class K, class V>
using BufferedCcehMap = CcehForm<K, V, Technique::b>;
template <class K, class V>
using OutOfPlaceCcehMap = CcehForm<K, V, Technique::bo>;
template <class K, class V>
using CachedCcehMap = CcehForm<K, V, Technique::boc>;

}  // namespace

std::vector<System> cceh_systems() {
  std::vector<System> systems = {
      {"cceh", "perdix::Cceh, hash index in a pool", true, open_store<CcehMap>, pool_settings,
       calls_of<CcehMap>()},
      {"cceh+b", "perdix::Cceh with write buffers in DRAM and a log", true,
       open_store<BufferedCcehMap>, pool_settings, calls_of<BufferedCcehMap>()},
      {"cceh+bo", "the same, and buffers are merged into copies of segments", true,
       open_store<OutOfPlaceCcehMap>, pool_settings, calls_of<OutOfPlaceCcehMap>()},
      {"cceh+boc", "the same, and the directory has a copy in DRAM", true,
       open_store<CachedCcehMap>, pool_settings, calls_of<CachedCcehMap>()}};
  for (System& system : systems) {
    system.parameters = {"segment_bytes", "lazy_depth"};
    system.tells_load_factor = true;
  }
  return systems;
}

}  // namespace perdix::bench
