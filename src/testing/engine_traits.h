// The traits of all engines, by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <perdix/pool.h>

#include "index/common/engine_traits.h"

namespace perdix::testing {

/// Those of all engines of pairs: of the library and of plugins(). Test programs with sample
/// engines link another list.
std::span<const detail::index::EngineTraits> all_engine_traits();

/// The plug-ins with which pools are opened. The library has none; programs with sample engines
/// have those of plugins/.
std::vector<const tips::Plugin*> plugins();

/// Those of one engine. Throws invalid_argument for an engine that has none.
const detail::index::EngineTraits& engine_traits(std::string_view engine);

/// Whether an engine has an insert that does not look first. No plug-in has.
bool inserts_ahead(std::string_view engine);

}  // namespace perdix::testing
