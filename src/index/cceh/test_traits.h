// What the suites must know of CCEH.
#pragma once

#include <bit>

#include <perdix/cceh.h>

#include "index/cceh/cceh.h"
#include "index/cceh/options.h"
#include "index/common/engine_traits.h"

namespace perdix::detail::index::cceh {

/// A third of these hashes begin with ten zeros: no split parts what fills their buckets until it
/// is as deep, so they go to the overflow of their segment, which grows. The others begin with
/// fewer, about as many with each number of them up to five. So the directory gets deep in one
/// place, and the leaders of other segments stand for several lines of it.
constexpr bool alike(Hash16 hash) {
  const int zeros = std::countl_zero(hash);
  return zeros >= 10 || (zeros <= 5 && hash % (1536 >> zeros) == 0);
}

struct TestTraits {
  template <Storable K, Storable V>
  using Index = Cceh<K, V>;

  static constexpr const auto& kOptions = cceh::kOptions;

  // Eight buckets, 32 slots; halves are rewritten from a depth of three on.
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full =
          31,  // both buckets of one key in two are full, and no pair of them has room elsewhere
      .most = 32,
      .joinable = 8,  // segments are joined when they are empty, and the pool is full
      .fills = {0, 3, 7, 16, 24, 30, 31, 64, 90, 130, 180},
      .crowds = alike,
      .uses_background = false,
      .magic = "CCEHSEG1",
      .small =
          [] {
            return IndexOptions{.named = {{"segment_bytes", "576"}, {"lazy_depth", "3"}}};
          },
      .buffered =
          [] {
            return IndexOptions{.named = {{"dram_budget", "40000"},
                                          {"technique", "boc"},
                                          {"segment_bytes", "576"},
                                          {"lazy_depth", "3"}}};
          },
      .seeded = true,
      .joins_empty = true,
  };
};

}  // namespace perdix::detail::index::cceh
