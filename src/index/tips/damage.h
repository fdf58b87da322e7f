// The errors for a Tips index whose file is damaged.
#pragma once

#include <string_view>

#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Throws Errc::corrupt: `part` ("the header") of the index is damaged.
[[noreturn]] void throw_damaged_part(const pool::PoolCore& pool, std::string_view part);

/// Of an index that an operation has left halfway (uno.h).
[[noreturn]] void throw_broken(const pool::PoolCore& pool);

}  // namespace perdix::detail::index::tips
