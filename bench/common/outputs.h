// Where the results of a benchmark go.
#pragma once

#include <filesystem>

#include "terminal/progress.h"

namespace perdix::bench {

/// Where a report goes besides standard output, and whether its progress is shown in any case.
struct Outputs {
  std::filesystem::path json;
  std::filesystem::path html;
  bool progress = false;

  terminal::ProgressStyle style() const {
    using terminal::ProgressStyle;
    return terminal::progress_style(progress ? ProgressStyle::log : ProgressStyle::none);
  }
};

}  // namespace perdix::bench
