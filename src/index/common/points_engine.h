// Turns the class of an engine without pairs into an EngineType.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "index/common/engine_type.h"

namespace perdix::detail::index {

/// An engine of points, or of another model without pairs: `Table` is constructed from a handle, is
/// a pool::OpenIndex, and has a static destroy(pool, root).
template <class Table>
constexpr EngineType points_engine(std::string_view name, DataModel model = DataModel::points) {
  return {name,
          model,
          {},
          [](pool::IndexHandle handle, const IndexOptions&) {
            return std::unique_ptr<pool::OpenIndex>(std::make_unique<Table>(std::move(handle)));
          },
          [](pool::PoolCore& pool, const IndexInfo&, std::uint64_t& root) {
            Table::destroy(pool, root);
          }};
}

}  // namespace perdix::detail::index
