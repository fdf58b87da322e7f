// What the suites must know of SpTree.
#pragma once

#include <perdix/sptree.h>

#include "index/common/engine_traits.h"
#include "index/sptree/filter.h"
#include "index/sptree/options.h"
#include "index/sptree/sptree.h"

namespace perdix::detail::index::sptree {

struct TestTraits {
  template <Storable K, Storable V>
  using Index = SpTree<K, V>;

  static constexpr const auto& kOptions = sptree::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full = kLeafPairs,
      .most = kLeafPairs,
      .joinable = kLeafPairs / 2,
      .fills = fills_around(kLeafPairs),
      .crowds = [](Hash16 hash) { return column(hash) == 0; },
      .uses_background = true,
      .magic = "PSPLEAF2",
      .buffered =
          [] {
            return IndexOptions{.named = {{"dram_budget", "16K"}}};
          },
  };
};

}  // namespace perdix::detail::index::sptree
