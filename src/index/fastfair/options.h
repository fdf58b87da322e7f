// The options of FastFair as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>

#include <perdix/papers/fastfair.h>

#include "index/common/engine_options.h"

namespace perdix::detail::index::fastfair {

inline constexpr std::array kOptions = {
    dram_budget_of_technique<FastFairOptions>(),
    technique<FastFairOptions>(),
    resume_in_background<FastFairOptions>(),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::fastfair
