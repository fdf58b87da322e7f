// What the suites must know of the sample hash index.
#pragma once

#include "index/common/engine_traits.h"
#include "samples/hash/hash.h"

namespace perdix::samples::hash {

struct TestTraits {
  template <Storable K, Storable V>
  using Index = SampleHash<K, V>;

  static constexpr const auto& kOptions = hash::kOptions;
  static constexpr detail::index::EngineTraits kTraits = {
      .engine = kEngineName,
      .full = 16,  // pairs that an array of 32 slots takes
      .most = 16,
      .joinable = 8,
      .fills = {0, 1, 7, 8, 15, 16, 17, 31, 32, 64, 180},
      .crowds = [](detail::index::Hash16 hash) { return (hash & 15) == 0; },
      .uses_background = false,
      .magic = {},
  };
};

}  // namespace perdix::samples::hash
