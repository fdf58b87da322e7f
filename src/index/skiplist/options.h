// The options of SkipList as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>

#include <perdix/papers/skiplist.h>

#include "index/common/engine_options.h"

namespace perdix::detail::index::skiplist {

inline constexpr std::array kOptions = {
    dram_budget_of_technique<SkipListOptions>(),
    technique<SkipListOptions>(),
    resume_in_background<SkipListOptions>(),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::skiplist
