// What the suites must know of the skip list.
#pragma once

#include <bit>

#include <perdix/papers/skiplist.h>

#include "index/common/engine_traits.h"
#include "index/skiplist/options.h"
#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// Keys of such hashes have nodes of three levels and more, so that few of them make high towers
/// side by side.
constexpr bool tall(Hash16 hash) { return std::countl_zero(hash) >= 4; }

struct TestTraits {
  template <Storable K, Storable V>
  using Index = SkipList<K, V>;

  // It has no leaves, nor anything else that fills or empties: numbers of pairs that make two to
  // five levels.
  static constexpr const auto& kOptions = skiplist::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full = 16,
      .most = 16,
      .joinable = 8,
      .fills = {0, 1, 3, 8, 16, 24, 32, 64, 90, 130, 180},
      .crowds = tall,
      .uses_background = false,
      .magic = "SNODE1",
      .buffered =
          [] {
            return IndexOptions{.named = {{"dram_budget", "20000"}, {"technique", "boc"}}};
          },
      .seeded = true,
  };
};

}  // namespace perdix::detail::index::skiplist
