// What an index of Tips makes of its options.
#pragma once

#include <cstdint>

#include <perdix/tips.h>

namespace perdix::detail::index::tips {

/// What an index of Tips is told.
struct Settings {
  TipsOptions options;   ///< within their ranges
  bool resumes = false;  ///< in the background
  bool writes = true;    ///< writes come, so there is a log
};

/// Throws invalid_argument.
Settings settings_of(const TipsOptions& options);

/// Those of an index that is opened in order to be destroyed.
Settings settings_for_the_end();

/// As the options have it; 0 there stands for the processors of this machine.
unsigned max_workers(const TipsOptions& options);

}  // namespace perdix::detail::index::tips
