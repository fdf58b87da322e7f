// What the suites must know of the indexes that are plugged into Tips.
#pragma once

#include <tuple>

#include <perdix/tips_indexes.h>

#include "index/common/engine_traits.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/options.h"
#include "index/tips/tips.h"

namespace perdix::detail::index::tips {

struct HashTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::Hash, K, V>;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kHashEngine,
      .full = 8,
      .most = 8,
      .joinable = 6,
      .fills = {0, 1, 4, 7, 8, 9, 16, 17, 32, 64, 180},
      .crowds = [](Hash16 hash) { return hash >> 13 == 0; },  // the first of eight buckets
      .uses_background = true,
      .magic = {},
  };
};

struct BstTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::Bst, K, V>;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = perdix::tips::Bst::kEngine,
      .full = 8,  // it has no leaves, so any few will do
      .most = 8,
      .joinable = 6,
      .fills = {0, 1, 2, 3, 5, 8, 16, 32, 64, 100, 180},
      .crowds = nullptr,
      .uses_background = true,
      .magic = {},
  };
};

struct BTreeTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::BTree, K, V>;

  static constexpr unsigned kFanout = BTree<Durable, IntegerKeys>::kFanout;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = kBTreeEngine,
      .full = kFanout,
      .most = kFanout,
      .joinable = kFanout,
      .fills = fills_around(kFanout),
      .crowds = nullptr,
      .uses_background = true,
      .magic = {},
  };
};

struct ArtTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::Art, K, V>;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = perdix::tips::Art::kEngine,
      .full = 8,  // children of a small node or two
      .most = 8,
      .joinable = 6,
      .fills = {0, 1, 2, 3, 4, 5, 16, 17, 48, 64, 180},
      .crowds = nullptr,
      .uses_background = true,
      .magic = {},
  };
};

struct ClhtTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::Clht, K, V>;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = perdix::tips::Clht::kEngine,
      .full = 16,  // of the first table, with which the second one comes
      .most = 16,
      .joinable = 6,
      .fills = {0, 1, 3, 4, 7, 15, 16, 17, 32, 33, 180},
      .crowds = [](Hash16 hash) { return hash >> 13 == 0; },  // the first of eight buckets
      .uses_background = true,
      .magic = {},
  };
};

struct LfHashTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::LfHash, K, V>;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = perdix::tips::LfHash::kEngine,
      .full = 8,  // with which the third level of the directory comes
      .most = 8,
      .joinable = 6,
      .fills = {0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 180},
      .crowds = [](Hash16 hash) { return hash >> 13 == 0; },  // before the first of eight places
      .uses_background = true,
      .magic = {},
  };
};

struct LfBstTraits {
  template <Storable K, Storable V>
  using Index = Tips<perdix::tips::LfBst, K, V>;

  static constexpr const auto& kOptions = tips::kOptions;
  static constexpr EngineTraits kTraits = {
      .engine = perdix::tips::LfBst::kEngine,
      .full = 8,  // each leaf has one pair, so any few will do
      .most = 8,
      .joinable = 6,
      .fills = {0, 1, 2, 3, 5, 8, 16, 32, 64, 100, 180},
      .crowds = nullptr,
      .uses_background = true,
      .magic = {},
  };
};

/// More than one engine, which the list of all engines takes one by one.
using TestTraits = std::tuple<HashTraits, BstTraits, BTreeTraits, ArtTraits, ClhtTraits,
                              LfHashTraits, LfBstTraits>;

}  // namespace perdix::detail::index::tips
