// The engines of the library. A source of its own, since test programs link another one in its
// place, which adds the toys of tests/toys.
#include "index/engine.h"

namespace perdix::detail::index {

std::span<const EngineType> engines() { return built_in_engines(); }

}  // namespace perdix::detail::index
