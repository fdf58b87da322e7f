// What the suites must know of NbTree.
#pragma once

#include <perdix/papers/nbtree.h>

#include "index/common/engine_traits.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/options.h"

namespace perdix::detail::index::nbtree {

struct TestTraits {
  template <Storable K, Storable V>
  using Index = NbTree<K, V>;

  static constexpr const auto& kOptions = nbtree::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full = kSmallCapacity,
      .most = kCapacity,
      .joinable = kJoinUpTo,
      // 46, 53: around its smaller leaves; 70: its larger one of numbers, of which seven in eight
      // are in the first quarter.
      .fills = {0, 3, 30, 46, 53, 62, 64, 70, 90, 128, 180},
      .crowds = [](Hash16 hash) { return fingerprint_of(hash) == 1; },
      .uses_background = false,
      .magic = "NBTBLK1",
  };
};

}  // namespace perdix::detail::index::nbtree
