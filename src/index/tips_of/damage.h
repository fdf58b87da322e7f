// The errors for a TipsOf index whose file is damaged.
#pragma once

#include <string_view>

#include "pool/pool_core.h"

namespace perdix::detail::index::tips_of {

/// Throws Errc::corrupt: `part` ("the header") of the index is damaged.
[[noreturn]] void throw_damaged_part(const pool::PoolCore& pool, std::string_view part);

}  // namespace perdix::detail::index::tips_of
