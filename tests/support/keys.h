// Sets of keys that are hard on an index: the ends of the range, prefixes of each other, zero
// bytes, the longest keys there may be, runs of neighbours.
#pragma once

#include <cstddef>
#include <vector>

#include "support/datum.h"
#include "support/rng.h"

namespace perdix::test {

enum class KeyStyle {
  mixed,      ///< spread over the whole range, with every edge case among them
  dense,      ///< neighbours without gaps
  clustered,  ///< runs of neighbours far from each other; strings share long prefixes
};

/// The keys at which an index may go wrong, in ascending order.
std::vector<Datum> edge_keys(Kind kind);

/// `count` different keys in ascending order; with `mixed` style the edge keys are among them (of
/// which there must not be more than `count`).
std::vector<Datum> make_keys(Kind kind, Rng& rng, std::size_t count, KeyStyle style);

/// The smallest key above `key`, or `key` if there is none.
Datum successor(const Datum& key);

/// A key just below `key` (for numbers the greatest one), or `key` if there is none.
Datum predecessor(const Datum& key);

}  // namespace perdix::test
