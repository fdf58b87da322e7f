// An engine as the layers above see it. What it can do is data, so that no code asks for its name.
//
// A new engine joins by one line in registry.cc: CONTRIBUTING.md, "Add an engine".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <perdix/index.h>

#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index {

/// What an engine of pairs may have besides the calls of PointIndex.
struct Capabilities {
  bool ordered = false;        ///< its keys have an order, and it has the calls of OrderedIndex
  bool buffers = false;        ///< IndexOptions::dram_budget buys write buffers
  bool resumes = false;        ///< what lies in DRAM comes back after the opening, as it is needed
  bool inserts_ahead = false;  ///< it has an insert that does not look first, insert_ahead()
};

struct EngineType {
  std::string_view name;
  DataModel model;
  Capabilities can;

  /// Opens or creates the index behind the handle. What checks and drops need.
  std::unique_ptr<pool::OpenIndex> (*open)(pool::IndexHandle handle, const IndexOptions& options);

  /// The same as an Index; null unless `model` is `pairs`.
  std::unique_ptr<Index> (*open_pairs)(pool::IndexHandle handle, const IndexOptions& options);

  /// Frees all blocks of an index that is being dropped and clears its root; restartable.
  void (*destroy)(pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root);
};

/// The engines of this release: registry.cc.
std::span<const EngineType> built_in_engines();

/// The engine types of the plug-ins that pools are opened with.
const EngineType& plugged_engine(bool ordered);

/// The engines that there are: those of this release, and in test programs the sample engines too.
std::span<const EngineType> engines();

/// The engine of that name; null if there is none.
const EngineType* look_up_engine(std::string_view name);

/// The engine of that name. Throws invalid_argument, with the names that there are.
const EngineType& find_engine(std::string_view name);

/// The engine of an index that a pool has or is to have: one of engines(), or a plug-in that the
/// pool was opened with. Null if there is none with that data model.
const EngineType* look_up_engine(const IndexInfo& info, const pool::PoolCore& pool);

/// The same. Throws invalid_argument, with the names that there are, and unsupported for a plug-in
/// that the pool was opened without.
const EngineType& find_engine(const IndexInfo& info, const pool::PoolCore& pool);

/// The engine of an index that exists. Throws unsupported if neither this release nor a plug-in of
/// the pool knows it, or not with that data model.
const EngineType& engine_of(const IndexInfo& info, const pool::PoolCore& pool);

}  // namespace perdix::detail::index
