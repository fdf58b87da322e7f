// What the suites must know of CCEH.
#pragma once

#include <perdix/cceh.h>

#include "index/cceh/cceh.h"
#include "index/common/engine_traits.h"

namespace perdix::detail::index::cceh {

/// Hashes that begin alike, so that the pairs go to the overflow of their segment; and a few
/// others, which have it split all the same.
constexpr bool alike(Hash16 hash) {
  const unsigned first = hash >> 10;
  return first == 0 || (first == 32 && hash % 8 == 0);
}

struct TestTraits {
  template <Storable K, Storable V>
  using Index = Cceh<K, V>;

  // Eight buckets, 32 slots; halves are written anew from a depth of three on.
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full = 26,  // the four buckets of some key are full, mostly
      .most = 32,
      .joinable = 8,  // segments are joined when they are empty, and the pool is full
      .fills = {0, 3, 7, 16, 20, 26, 32, 64, 90, 130, 180},
      .crowds = alike,
      .uses_background = false,
      .magic = "CCEHSEG1",
      .small = IndexOptions{.cceh = {.segment_bytes = 576, .lazy_depth = 3}},
  };
};

}  // namespace perdix::detail::index::cceh
