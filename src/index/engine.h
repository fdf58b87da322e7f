// An engine as the layers above see it: a name, how to open an index of it, and how to free one.
//
// A new engine joins by one line in registry.cc.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <perdix/index.h>

#include "pm/offset.h"
#include "pool/index_handle.h"

namespace perdix::index {

/// What pool-wide checks need of an open index, beyond the public interface.
class EngineIndex : public Index {
 public:
  /// Shows every block of the pool that the index reaches. Writers must be idle.
  virtual void for_each_block(const std::function<void(pm::Offset)>& visit) const = 0;
};

struct Engine {
  std::string_view name;
  /// Opens or creates the index behind the handle.
  std::unique_ptr<EngineIndex> (*open)(pool::IndexHandle handle, const IndexInfo& info,
                                       const IndexOptions& options);
  /// Frees all blocks of an index that is being dropped and clears its root; restartable.
  void (*destroy)(pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root);
};

/// All engines of this library.
std::span<const Engine> engines();

/// The engine of that name. Throws invalid_argument, with the names that there are.
const Engine& find_engine(std::string_view name);

/// The engine of an index that exists. Throws unsupported if this release doesn't know it.
const Engine& engine_of(const IndexInfo& info, std::string_view pool);

/// Whether this release knows the engine.
bool is_known_engine(std::string_view name) noexcept;

}  // namespace perdix::index
