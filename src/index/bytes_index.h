// An index of any engine and kinds behind the interface of bytes.
#pragma once

#include <memory>

#include <perdix/index.h>

#include "index/common/engine_type.h"
#include "pool/index_handle.h"

namespace perdix::detail::index {

/// Opens or creates the index behind the handle. Its engine has pairs.
std::unique_ptr<Index> open_bytes_index(const EngineType& engine, pool::IndexHandle handle,
                                        const IndexOptions& options);

}  // namespace perdix::detail::index
