// The options of SpTree as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>

#include <perdix/sptree.h>

#include "index/common/engine_options.h"

namespace perdix::detail::index::sptree {

inline constexpr std::array kOptions = {
    option<&SpTreeOptions::dram_budget>("dram_budget", "bytes of DRAM for write buffers; 0: none"),
    resume_in_background<SpTreeOptions>(),
    option<&SpTreeOptions::scan_budget>("scan_budget",
                                        "bytes of DRAM for the order of leaves, which scans keep"),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::sptree
