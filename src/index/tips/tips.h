// The engines of Tips: a plugged-in index each (indexes/), behind the same two classes (map.h).
//
// There is no tips.cc. What all of them share is Core, which knows keys and values as bytes only:
// core.h names its files.
#pragma once

#include <string_view>

#include "index/tips/map.h"

namespace perdix::detail::index::tips {

inline constexpr std::string_view kHashEngine = "tips:hash";
inline constexpr std::string_view kBstEngine = "tips:bst";
inline constexpr std::string_view kBTreeEngine = "tips:btree";
inline constexpr std::string_view kArtEngine = "tips:art";
inline constexpr std::string_view kClhtEngine = "tips:clht";
inline constexpr std::string_view kLfHashEngine = "tips:lfhash";
inline constexpr std::string_view kLfBstEngine = "tips:lfbst";

}  // namespace perdix::detail::index::tips
