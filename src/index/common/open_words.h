// Opens an index for its public class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "index/common/engine_options.h"
#include "index/common/open_or_remove.h"
#include "index/common/word_index.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

/// The index of that name, which is created if there is none. `Engine` is a WordIndex that is
/// constructed from a handle and `options`, of which `kOptions` is the table. Throws Errors only:
/// invalid_argument, before anything is made, for an option that is not in its range.
template <class Engine, const auto& kOptions, Storable K, class Options>
std::unique_ptr<WordIndex<K>> open_words(const Pool& pool, std::string_view name,
                                         std::string_view engine, Kind values,
                                         const Options& options) {
  pool::PoolCore& core = *pool.core();
  return pool::as_errors(core, [&] {
    require_valid(kOptions, engine, options);
    const IndexInfo info{std::string(name), std::string(engine), kKindOf<K>, values};
    return open_or_remove(
        core, info, [&](std::uint64_t& root) { Engine::destroy(core, root, values); },
        [&](pool::IndexHandle handle) {
          return std::unique_ptr<WordIndex<K>>(
              std::make_unique<Engine>(std::move(handle), options));
        });
  });
}

}  // namespace perdix::detail::index
