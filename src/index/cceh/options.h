// The options of Cceh as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>

#include <perdix/cceh.h>

#include "index/cceh/layout.h"
#include "index/common/engine_options.h"

namespace perdix::detail::index::cceh {

inline constexpr unsigned kMinSegmentBytes = 5 * pm::kLineSize;  // with its head
inline constexpr unsigned kMaxSegmentBytes = 1 << 20;
inline constexpr unsigned kMaxLazyDepth = 64;

inline constexpr std::array kOptions = {
    dram_budget_of_technique<CcehOptions>(),
    technique<CcehOptions>(),
    resume_in_background<CcehOptions>(),
    option<&CcehOptions::segment_bytes>(
        "segment_bytes", "bytes of a segment of a new index", "a multiple of 64 from 320 to 1M",
        [](const CcehOptions& o) {
          return o.segment_bytes % pm::kLineSize == 0 && o.segment_bytes >= kMinSegmentBytes &&
                 o.segment_bytes <= kMaxSegmentBytes;
        }),
    option<&CcehOptions::lazy_depth>(
        "lazy_depth", "bits of the hash up to which a split of a new index writes one half only",
        "at most 64", [](const CcehOptions& o) { return o.lazy_depth <= kMaxLazyDepth; }),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::cceh
