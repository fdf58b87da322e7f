// The seeds of hashes of keys.
#pragma once

#include <cstdint>

namespace perdix::detail::index {

/// A random number, never 0, for the util::SeededHash of one index. No call of the index shows it.
std::uint64_t draw_hash_seed();

}  // namespace perdix::detail::index
