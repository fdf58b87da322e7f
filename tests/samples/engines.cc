// What the suites link in place of src/index/engines.cc and src/testing/engine_list.cc: the engines
// of the release and the sample engines.
#include "samples/engines.h"

#include <array>
#include <vector>

#include "index/engine.h"
#include "index/pairs_engine.h"
#include "samples/points/points.h"
#include "testing/engine_traits.h"

namespace perdix {

std::span<const detail::index::EngineType> detail::index::engines() {
  static const std::vector<EngineType> all = [] {
    std::vector<EngineType> engines(built_in_engines().begin(), built_in_engines().end());
    engines.push_back(pairs_engine<samples::hash::Table>(samples::hash::kEngineName, {}));
    engines.push_back(samples::points::engine());
    return engines;
  }();
  return all;
}

std::span<const detail::index::EngineTraits> testing::all_engine_traits() {
  static constexpr auto kAll = []<class... Traits>(std::tuple<Traits...>*) {
    return std::array{Traits::kTraits...};
  }(static_cast<samples::AllEngines*>(nullptr));
  return kAll;
}

}  // namespace perdix
