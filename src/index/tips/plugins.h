// The plugged-in indexes of this release.
#pragma once

#include <string_view>

#include <perdix/types.h>

#include "index/tips/plugin.h"

namespace perdix::detail::index::tips {

/// Begins the names of the engines.
inline constexpr std::string_view kEnginePrefix = "tips:";

/// The plug-in of that name, "btree", for keys of one kind; null if there is none.
const Plugin* look_up_plugin(std::string_view name, Kind keys);

/// The plug-in of an engine, "tips:btree", which must be one.
const Plugin& find_plugin(std::string_view engine, Kind keys);

}  // namespace perdix::detail::index::tips
