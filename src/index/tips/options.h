// The options of Tips as a table; index/common/engine_options.h says what for.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include <perdix/tips.h>

#include "index/common/engine_options.h"
#include "index/tips/layout.h"
#include "index/tips/uno.h"

namespace perdix::detail::index::tips {

inline constexpr std::uint32_t kMaxWorkers = 256;

inline constexpr std::array kOptions = {
    resume_in_background<TipsOptions>(),
    option<&TipsOptions::cache_share>(
        "cache_share", "room of the cache as a share of the pairs at the opening", "from 0 to 1",
        [](const TipsOptions& o) { return o.cache_share >= 0 && o.cache_share <= 1; }),
    option<&TipsOptions::cached_pairs>(
        "cached_pairs", "pairs that the cache has room for at least", "at most 4294967296",
        [](const TipsOptions& o) { return o.cached_pairs <= std::uint64_t{1} << 32; }),
    option<&TipsOptions::chain>("chain", "entries of a chain of the cache", "from 1 to 64",
                                [](const TipsOptions& o) { return o.chain >= 1 && o.chain <= 64; }),
    option<&TipsOptions::log_bytes>(
        "log_bytes", "bytes of each operational log of a new index; 0: by the size of the memory",
        "0, or a power of two from 256K to 256M",
        [](const TipsOptions& o) {
          return o.log_bytes == 0 || (std::has_single_bit(o.log_bytes) &&
                                      o.log_bytes >= kMinLogBytes && o.log_bytes <= kMaxLogBytes);
        }),
    option<&TipsOptions::undo_records>(
        "undo_records", "records of the undo log after which the logs are reclaimed",
        "from 320 to 4194304",
        [](const TipsOptions& o) {
          return o.undo_records >= Uno::kUndoRoom && o.undo_records <= std::uint32_t{1} << 22;
        }),
    option<&TipsOptions::min_workers>(
        "min_workers", "threads that replay the logs, at least", "from 1 to max_workers or 256",
        [](const TipsOptions& o) {
          const std::uint32_t limit = o.max_workers != 0 ? o.max_workers : kMaxWorkers;
          return o.min_workers >= 1 && o.min_workers <= limit;
        }),
    option<&TipsOptions::max_workers>(
        "max_workers",
        "threads that replay the logs, at most; 0: as many as processors, or min_workers",
        "at most 256", [](const TipsOptions& o) { return o.max_workers <= kMaxWorkers; }),
};
static_assert(is_complete(kOptions));

}  // namespace perdix::detail::index::tips
