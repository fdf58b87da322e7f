// What an index of Tips makes of its options.
#pragma once

#include <cstdint>

#include <perdix/types.h>

namespace perdix::detail::index::tips {

/// IndexOptions, within their ranges.
struct Settings {
  TipsOptions options;
  bool resumes;  ///< in the background
};

/// Throws invalid_argument.
Settings settings_of(const IndexOptions& options);

/// Those of an index that is opened for a call of the pool.
Settings settings_of_the_pool();

/// As the options have it; 0 there stands for the processors of this machine.
unsigned most_workers(const TipsOptions& options);

}  // namespace perdix::detail::index::tips
