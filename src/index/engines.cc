// The engines of the library. A separate source file, since test programs replace it by one that
// adds the sample engines of tests/samples.
#include "index/engine.h"

namespace perdix::detail::index {

std::span<const EngineSet* const> engine_sets() { return linked_engine_sets(); }

}  // namespace perdix::detail::index
