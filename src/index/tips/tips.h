// The engines of Tips: a plugged-in index each (indexes/), behind the same two classes (map.h).
// Further indexes are plug-ins of a library of their own (plugins/).
//
// There is no tips.cc. What all of them share is Core, which knows keys and values as bytes only:
// core.h names its files.
#pragma once

#include <string_view>

#include "index/tips/map.h"

namespace perdix::detail::index::tips {

inline constexpr std::string_view kHashEngine = "tips:hash";
inline constexpr std::string_view kBTreeEngine = "tips:btree";

}  // namespace perdix::detail::index::tips
