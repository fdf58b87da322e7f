// The errors for a Tips index whose file is damaged.
#pragma once

#include <string_view>

#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Throws Errc::corrupt: `what` of the index is damaged.
[[noreturn]] void throw_corrupt(const pool::PoolCore& pool, std::string_view what);

/// Of an index that an operation has left halfway (uno.h).
[[noreturn]] void throw_broken(const pool::PoolCore& pool);

}  // namespace perdix::detail::index::tips
