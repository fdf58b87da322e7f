// The options of FastFair as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>

#include <perdix/papers/fastfair.h>

#include "index/common/engine_options.h"

namespace perdix::detail::index::fastfair {

inline constexpr std::array kOptions = {
    option<&FastFairOptions::dram_budget>("dram_budget",
                                          "bytes of DRAM for write buffers; 0: none"),
    option<&FastFairOptions::technique>("technique", "what is done with that budget"),
    resume_in_background<FastFairOptions>(),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::fastfair
