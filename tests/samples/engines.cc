// What the suites link in place of src/index/engines.cc and src/testing/engine_list.cc: the engines
// of the release, its plug-ins and the sample engines.
#include "samples/engines.h"

#include <array>
#include <vector>

#include <perdix/tips_indexes.h>

#include "index/common/points_engine.h"
#include "index/engine.h"
#include "samples/points/points.h"
#include "testing/engine_traits.h"

namespace perdix {

std::span<const detail::index::EngineSet* const> detail::index::engine_sets() {
  static const std::array kEngines = {
      samples::hash::kEngine, points_engine<samples::points::Table>(samples::points::kEngineName)};
  static const EngineSet samples = {kEngines};
  static const std::vector<const EngineSet*> all = [] {
    const std::span<const EngineSet* const> linked = linked_engine_sets();
    std::vector<const EngineSet*> sets(linked.begin(), linked.end());
    sets.push_back(&samples);
    return sets;
  }();
  return all;
}

std::span<const detail::index::EngineTraits> testing::all_engine_traits() {
  static constexpr auto kAll = []<class... Traits>(std::tuple<Traits...>*) {
    return std::array{Traits::kTraits...};
  }(static_cast<samples::AllEngines*>(nullptr));
  return kAll;
}

std::vector<const tips::Plugin*> testing::plugins() { return tips::further_plugins(); }

}  // namespace perdix
