// The errors for a Tips index whose file is damaged.
#pragma once

#include <string_view>

#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Throws Errc::corrupt: `part` ("the header") of the index is damaged.
[[noreturn]] void throw_damaged_part(const pool::PoolCore& pool, std::string_view part);

/// Of an index that an operation has left halfway (uno.h): for want of room, or since the plug-in
/// named memory that is not of the pool.
[[noreturn]] void throw_broken(const pool::PoolCore& pool, bool foreign_memory);

/// Of a plug-in that has thrown what is no std::exception.
[[noreturn]] void throw_strange(std::string_view plugin);

}  // namespace perdix::detail::index::tips
