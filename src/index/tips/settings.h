// What an index of Tips makes of its options.
#pragma once

#include <cstdint>

#include <perdix/types.h>

#include "index/tips/cache.h"

namespace perdix::detail::index::tips {

/// IndexOptions, within their ranges.
struct Settings {
  TipsOptions options;
  bool resumes = false;  ///< in the background
};

/// Throws invalid_argument.
Settings settings_of(const IndexOptions& options);

/// As the options have it; 0 there stands for the processors of this machine.
unsigned most_workers(const TipsOptions& options);

/// The buckets and the budget of the cache of an index of that many pairs.
Cache::Size cache_size(const TipsOptions& options, std::uint64_t pairs, std::uint64_t ring_bytes);

}  // namespace perdix::detail::index::tips
