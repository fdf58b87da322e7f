// Sets of keys that are hard on an index: the ends of the range, prefixes of each other, zero
// bytes, the longest keys there may be, runs of neighbours.
#pragma once

#include <perdix/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/rng.h"

namespace perdix::test {

enum class KeyStyle {
  mixed,      ///< spread over the whole range, with every edge case among them
  dense,      ///< neighbours without gaps
  clustered,  ///< runs of neighbours far from each other; strings share long prefixes
};

/// The keys at which an index may go wrong, in ascending order.
template <Storable K>
std::vector<K> edge_keys();

/// `count` different keys in ascending order; with `mixed` style the edge keys are among them (of
/// which there must not be more than `count`).
template <Storable K>
std::vector<K> make_keys(Rng& rng, std::size_t count, KeyStyle style);

/// The smallest key above `key`, or `key` if there is none.
std::uint64_t successor(std::uint64_t key);
std::string successor(const std::string& key);

/// A key just below `key` (for numbers the greatest one), or `key` if there is none.
std::uint64_t predecessor(std::uint64_t key);
std::string predecessor(const std::string& key);

}  // namespace perdix::test
