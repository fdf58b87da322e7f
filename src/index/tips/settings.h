// Settings of an index of Tips, from its options.
#pragma once

#include <cstdint>

#include <perdix/tips.h>

#include "index/tips/cache.h"

namespace perdix::detail::index::tips {

/// The settings of an index of Tips.
struct Settings {
  TipsOptions options;   ///< within their ranges
  bool resumes = false;  ///< in the background
};

/// The options must be in their ranges.
Settings settings_of(const TipsOptions& options);

/// Bytes of each log of a new index without `log_bytes`, in a pool that may grow to that size: some
/// MiB, in a small pool or on a small machine less.
std::uint64_t default_log_bytes(std::uint64_t max_pool_bytes);

/// As the options have it; 0 there stands for the processors of this machine.
unsigned max_workers(const TipsOptions& options);

/// The buckets and the budget of the cache of an index of that many pairs.
Cache::Size cache_size(const TipsOptions& options, std::uint64_t pairs, std::uint64_t ring_bytes);

}  // namespace perdix::detail::index::tips
