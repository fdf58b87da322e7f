#include <perdix/cceh.h>

#include <vector>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

IndexOptions index_options(const Setup& setup) {
  IndexOptions options;
  CcehOptions& cceh = options.cceh;
  cceh.segment_bytes =
      static_cast<std::uint32_t>(setup.parameter("segment_bytes", cceh.segment_bytes));
  cceh.lazy_depth = static_cast<std::uint32_t>(setup.parameter("lazy_depth", cceh.lazy_depth));
  return options;
}

template <class K, class V>
class CcehMap : public PerdixMap<Cceh, K, V> {
 public:
  explicit CcehMap(const Setup& setup) : PerdixMap<Cceh, K, V>(setup, index_options(setup)) {}

  OwnFootprint footprint() const {
    const IndexStats stats = this->index().stats();
    return {stats.dram_bytes, stats.pm_bytes, stats.load_factor};
  }
};

}  // namespace

std::vector<Engine> cceh_engines() {
  Engine engine{"cceh",        "perdix::Cceh, hash index in a pool",
                true,          open_store<CcehMap>,
                pool_settings, calls_of<CcehMap>()};
  engine.parameters = {"segment_bytes", "lazy_depth"};
  engine.tells_load_factor = true;
  return {engine};
}

}  // namespace perdix::bench
