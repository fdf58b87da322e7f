// Names of the classes to take where there is no reason for another one. docs/benchmarks.md
// ("Which hash index") has the figures that chose them; a later release may choose others, and a
// pool says which engine an index has.
#pragma once

#include <perdix/cceh.h>
#include <perdix/sptree.h>

namespace perdix {

/// The durable ordered map for everybody.
template <Storable K, Storable V>
using Map = SpTree<K, V>;

/// The durable map without order for everybody.
template <Storable K, Storable V>
using HashMap = Cceh<K, V>;

}  // namespace perdix
