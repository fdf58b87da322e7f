// The keys that the explorer puts into an index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <perdix/types.h>

#include "index/common/engine_traits.h"

namespace perdix::testing {

inline constexpr unsigned kIndexKeys = 480;

/// A number as a key or a value.
std::string bytes_of_number(std::uint64_t number);

/// kIndexKeys keys: for numbers the ends of the range and what lies anywhere between, most of it in
/// the first quarter, since no leaf of NbTree crosses one; for bytes the empty one, prefixes of
/// others, and lengths from short to several lines.
const std::vector<std::string>& any_keys(Kind kind);

/// As many others that want the same place in the engine, as EngineTraits::crowds says; any_keys()
/// if none do.
std::vector<std::string> crowded_keys(Kind kind, const detail::index::EngineTraits& engine);

}  // namespace perdix::testing
