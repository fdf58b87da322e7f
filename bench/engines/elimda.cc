#include <vector>

#include <perdix/elimda.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using ElimDaMap = Resuming<PerdixMap<ElimDa, K, V>>;

}  // namespace

std::vector<Engine> elimda_engines() {
  return {{"elimda", "perdix::ElimDa, hash index in DRAM and a pool", true, open_store<ElimDaMap>,
           pool_settings}};
}

}  // namespace perdix::bench
