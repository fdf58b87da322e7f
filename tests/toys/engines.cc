// What the suites link in place of src/index/engines.cc and src/testing/engine_list.cc: the engines
// of the release and the toys.
#include "toys/engines.h"

#include <array>
#include <vector>

#include "index/engine.h"
#include "index/pairs_engine.h"
#include "testing/engine_traits.h"
#include "toys/points/points.h"

namespace perdix {

std::span<const detail::index::EngineType> detail::index::engines() {
  static const std::vector<EngineType> all = [] {
    std::vector<EngineType> engines(built_in_engines().begin(), built_in_engines().end());
    engines.push_back(pairs_engine<toys::hash::Table>(toys::hash::kEngineName, {}));
    engines.push_back(toys::points::engine());
    return engines;
  }();
  return all;
}

std::span<const detail::index::EngineTraits> testing::all_engine_traits() {
  static constexpr auto kAll = []<class... Traits>(std::tuple<Traits...>*) {
    return std::array{Traits::kTraits...};
  }(static_cast<toys::AllEngines*>(nullptr));
  return kAll;
}

}  // namespace perdix
