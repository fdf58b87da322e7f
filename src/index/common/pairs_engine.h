// Turns the class template of an engine of pairs into an EngineType.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/types.h>

#include "index/common/engine_options.h"
#include "index/common/engine_type.h"
#include "index/common/word_index.h"
#include "pool/index_handle.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

/// Opens an index by name: gives the engine its own options.
template <class Engine, const auto& kOptions, class Interface>
std::unique_ptr<Interface> open_engine(pool::IndexHandle handle, const IndexOptions& options) {
  const auto wanted = options_of(kOptions, handle.info().engine, options);
  return std::make_unique<Engine>(std::move(handle), wanted);
}

/// An engine of pairs: `Engine<K>` is a WordIndex<K>, is constructed from a handle and the options
/// of which `kOptions` is the table, and has a static destroy(pool, root, kind of values).
template <template <class> class Engine, const auto& kOptions>
constexpr EngineType pairs_engine(std::string_view name, Capabilities can) {
  using OfU64 = Engine<std::uint64_t>;
  using OfBytes = Engine<std::string>;
  return {name,
          DataModel::pairs,
          can,
          [](pool::IndexHandle handle, const IndexOptions& options) {
            const auto open = handle.info().key_kind == Kind::u64
                                  ? open_engine<OfU64, kOptions, pool::OpenIndex>
                                  : open_engine<OfBytes, kOptions, pool::OpenIndex>;
            return open(std::move(handle), options);
          },
          [](pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root) {
            const auto destroy = info.key_kind == Kind::u64 ? OfU64::destroy : OfBytes::destroy;
            destroy(pool, root, info.value_kind);
          },
          open_engine<OfU64, kOptions, WordIndex<std::uint64_t>>,
          open_engine<OfBytes, kOptions, WordIndex<std::string>>,
          [] { return describe(kOptions); },
          [](std::string_view engine, const IndexOptions& options) {
            (void)options_of(kOptions, engine, options);
          }};
}

}  // namespace perdix::detail::index
