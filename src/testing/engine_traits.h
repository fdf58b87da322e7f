// The traits of all engines, by name.
#pragma once

#include <span>
#include <string_view>

#include "index/common/engine_traits.h"

namespace perdix::testing {

/// Those of all engines of pairs that index::engines() lists. Test programs with sample engines
/// link another list.
std::span<const detail::index::EngineTraits> all_engine_traits();

/// Those of one engine. Throws invalid_argument for an engine that has none.
const detail::index::EngineTraits& engine_traits(std::string_view engine);

}  // namespace perdix::testing
