// The traits of the engines of this release. A separate source file, since test programs replace it
// by one that adds plug-ins and the sample engines of tests/samples.
#include "engine_list.h"

#include <array>

#include "testing/engine_traits.h"

namespace perdix::testing {

std::span<const detail::index::EngineTraits> all_engine_traits() {
  static constexpr auto kAll = []<class... Traits>(std::tuple<Traits...>*) {
    return std::array{Traits::kTraits...};
  }(static_cast<EngineList*>(nullptr));
  return kAll;
}

std::vector<const tips::Plugin*> plugins() { return {}; }

}  // namespace perdix::testing
