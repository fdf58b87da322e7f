// What the suites must know of FAST&FAIR.
#pragma once

#include <perdix/papers/fastfair.h>

#include "index/common/engine_traits.h"
#include "index/fastfair/fastfair.h"
#include "index/fastfair/options.h"

namespace perdix::detail::index::fastfair {

struct TestTraits {
  template <Storable K, Storable V>
  using Index = FastFair<K, V>;

  static constexpr const auto& kOptions = fastfair::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full = kCapacity,
      .most = kCapacity,
      .joinable = kCapacity / 2,
      .fills = fills_around(kCapacity),
      .crowds = nullptr,
      .uses_background = false,
      .magic = "FNODE1",
      .buffered =
          [] {
            return IndexOptions{.named = {{"dram_budget", "3000"}, {"technique", "boc"}}};
          },
  };
};

}  // namespace perdix::detail::index::fastfair
