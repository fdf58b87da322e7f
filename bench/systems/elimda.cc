#include <chrono>
#include <thread>
#include <vector>

#include <perdix/papers/elimda.h>

#include "systems/perdix_map.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

ElimDaOptions elimda_options(const Setup& setup) {
  ElimDaOptions options;
  const auto set = [&](std::uint32_t& option, const char* name) {
    option = static_cast<std::uint32_t>(setup.parameter(name, option));
  };
  set(options.collecting_logs, "collecting_logs");
  set(options.media_unit, "media_unit");
  set(options.d_bucket_pairs, "d_bucket_pairs");
  set(options.p_bucket_pairs, "p_bucket_pairs");
  set(options.fingerprint_bits, "fingerprint_bits");
  // Only an index that collects pairs uses these.
  for (const char* const name : {"collecting_logs", "media_unit", "d_bucket_pairs"}) {
    if (setup.parameters.contains(name)) options.media_units = MediaUnits::always;
  }
  return options;
}

template <class K, class V>
class ElimDaMap : public PerdixMap<ElimDa, K, V> {
 public:
  explicit ElimDaMap(const Setup& setup) : PerdixMap<ElimDa, K, V>(setup, elimda_options(setup)) {}

  /// size() would count the pairs, too.
  void resume() const {
    while (this->index().stats().resumed < 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  OwnFootprint footprint() const {
    const IndexStats stats = this->index().stats();
    return {stats.dram_bytes, stats.pm_bytes, stats.load_factor};
  }
};

}  // namespace

std::vector<System> elimda_systems() {
  System system{"elimda",      "perdix::ElimDa, hash index in DRAM and a pool",
                true,          open_store<ElimDaMap>,
                pool_settings, calls_of<ElimDaMap>()};
  system.parameters = {"collecting_logs", "media_unit", "d_bucket_pairs", "p_bucket_pairs",
                       "fingerprint_bits"};
  system.tells_load_factor = true;
  return {system};
}

}  // namespace perdix::bench
