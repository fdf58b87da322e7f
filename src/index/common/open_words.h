// Opens an index for its public class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "index/common/engine_type.h"
#include "index/common/open_or_remove.h"
#include "index/common/word_index.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

/// The index of that name, which is created if there is none. Throws Errors only.
template <Storable K>
std::unique_ptr<WordIndex<K>> open_words(const Pool& pool, std::string_view name,
                                         const EngineType& engine, Kind values,
                                         const IndexOptions& options) {
  pool::PoolCore& core = *pool.core();
  return pool::as_errors(core, [&] {
    const IndexInfo info{std::string(name), std::string(engine.name), kKindOf<K>, values};
    return open_or_remove(
        core, info, [&](std::uint64_t& root) { engine.destroy(core, info, root); },
        [&](pool::IndexHandle handle) {
          return engine.template open_words<K>()(std::move(handle), options);
        });
  });
}

}  // namespace perdix::detail::index
