// What an index of Tips makes of its options.
#pragma once

#include <cstdint>

#include <perdix/types.h>

namespace perdix::detail::index::tips {

/// IndexOptions, within their ranges.
struct Settings {
  TipsOptions options;
  bool resumes = false;  ///< in the background
  bool writes = true;    ///< writes come, so there is a log
};

/// Throws invalid_argument.
Settings settings_of(const IndexOptions& options);

/// Those of an index that is opened in order to be destroyed.
Settings settings_for_the_end();

/// As the options have it; 0 there stands for the processors of this machine.
unsigned most_workers(const TipsOptions& options);

}  // namespace perdix::detail::index::tips
