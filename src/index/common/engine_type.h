// An engine as the layers above see it. What it can do is data, so that no code asks for its name.
//
// The folder of an engine defines its EngineSet in its api.cc, beside the public class, so that a
// program which uses the class has both. CMake writes the list of all sets (cmake/engines.cmake).
// See CONTRIBUTING.md, "Add an engine".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "pm/offset.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index {

template <Storable K>
class WordIndex;

/// Calls of an engine of pairs beyond those of PointIndex.
struct Capabilities {
  bool ordered = false;        ///< its keys have an order: it has scan() and scan_down()
  bool resumes = false;        ///< what lies in DRAM comes back after the opening, as it is needed
  bool inserts_ahead = false;  ///< it has an insert that does not look first, insert_ahead()
};

struct EngineType {
  std::string_view name;
  DataModel model;
  Capabilities can;

  /// Opens or creates the index behind the handle. What checks and drops need. Throws
  /// invalid_argument for an option that the engine does not have.
  std::unique_ptr<pool::OpenIndex> (*open)(pool::IndexHandle handle, const IndexOptions& options);

  /// Frees all blocks of an index that is being dropped and clears its root; restartable.
  void (*destroy)(pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root);

  /// Like open(), for an index with keys of that kind; null unless `model` is `pairs`.
  template <Storable K>
  using OpenWords = std::unique_ptr<WordIndex<K>> (*)(pool::IndexHandle, const IndexOptions&);
  OpenWords<std::uint64_t> open_u64_keys = nullptr;
  OpenWords<std::string> open_byte_keys = nullptr;

  /// What Index::options() says; null unless `model` is `pairs`.
  std::vector<OptionInfo> (*options)() = nullptr;

  /// Throws invalid_argument for an option that the engine of that name does not have, and for a
  /// value that can't be; null unless `model` is `pairs`.
  void (*require_options)(std::string_view name, const IndexOptions& options) = nullptr;

  /// One of the two.
  template <Storable K>
  OpenWords<K> open_words() const {
    if constexpr (std::is_same_v<K, std::uint64_t>) {
      return open_u64_keys;
    } else {
      return open_byte_keys;
    }
  }
};

/// The part of a folder whose indexes may be of engines that a program brings along
/// (PoolOptions::plugins). Only a pool that was opened with them has their engine types.
struct PluginHost {
  /// Whether an engine of that name is such a plug-in, known or not.
  bool (*owns)(std::string_view engine);

  /// Throws invalid_argument unless these can be the plug-ins of a pool.
  void (*require)(std::span<const perdix::tips::Plugin* const> plugins);

  /// What Index::options() says of each plug-in.
  std::vector<OptionInfo> (*options)();

  /// The engine type of an index; null if the pool was opened without its plug-in.
  const EngineType* (*look_up)(const IndexInfo& info, const pool::PoolCore& pool);

  /// Checks what can be checked of an index without its plug-in, and adds the blocks it reaches.
  void (*check_logs)(pool::PoolCore& pool, const IndexInfo& info, CheckReport& report,
                     std::vector<pm::Offset>& reached);
};

/// The engines of one folder of src/index/.
struct EngineSet {
  std::span<const EngineType> engines;
  const PluginHost* plugins = nullptr;  ///< null if its engines are all there are
};

}  // namespace perdix::detail::index
