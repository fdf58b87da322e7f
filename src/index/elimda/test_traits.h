// What the suites must know of ElimDa.
#pragma once

#include <perdix/papers/elimda.h>

#include "index/common/engine_traits.h"
#include "index/elimda/elimda.h"
#include "index/elimda/options.h"

namespace perdix::detail::index::elimda {

struct TestTraits {
  template <Storable K, Storable V>
  using Index = ElimDa<K, V>;

  // Four logs of four pairs, buckets of 16 pairs in PM and 4 in DRAM, two in a segment.
  static constexpr const auto& kOptions = elimda::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kEngineName,
      .full = 40,
      .most = 40,
      .joinable = 8,  // segments are joined when they are empty, and the pool is full
      .fills = {0, 3, 7, 16, 20, 28, 40, 64, 90, 130, 180},
      .crowds = nullptr,
      .uses_background = false,
      .magic = "!EDASEG1",
      .small =
          [] {
            return IndexOptions{.named = {{"collecting_logs", "4"},
                                          {"media_unit", "64"},
                                          {"d_bucket_pairs", "4"},
                                          {"p_bucket_pairs", "16"},
                                          {"media_units", "always"}}};
          },
      .growing =
          [] {
            return IndexOptions{.named = {{"media_unit", "64"},
                                          {"d_bucket_pairs", "4"},
                                          {"p_bucket_pairs", "16"},
                                          {"media_units", "always"}}};
          },
      .straight =
          [] {
            return IndexOptions{.named = {{"media_unit", "64"},
                                          {"d_bucket_pairs", "4"},
                                          {"p_bucket_pairs", "16"},
                                          {"media_units", "never"}}};
          },
      .seeded = true,
  };
};

}  // namespace perdix::detail::index::elimda
