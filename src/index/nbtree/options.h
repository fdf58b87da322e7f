// The options of NbTree as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>

#include <perdix/papers/nbtree.h>

#include "index/common/engine_options.h"

namespace perdix::detail::index::nbtree {

inline constexpr std::array kOptions = {
    resume_in_background<NbTreeOptions>(),
    option<&NbTreeOptions::scan_budget>("scan_budget",
                                        "bytes of DRAM for the order of leaves, which scans keep"),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::nbtree
