// The errors for a TipsOf index whose file is damaged.
#pragma once

#include <string_view>

#include "pool/pool_core.h"

namespace perdix::detail::index::tips_of {

/// Throws Errc::corrupt: `what` of the index is damaged.
[[noreturn]] void throw_corrupt(const pool::PoolCore& pool, std::string_view what);

}  // namespace perdix::detail::index::tips_of
