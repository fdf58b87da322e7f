// Shows the progress of a run on standard error.
#pragma once

#include <functional>

#include "common/run_options.h"
#include "terminal/progress.h"

namespace perdix::bench {

/// For RunOptions::on_progress: a line that is redrawn on a terminal; one line per phase in a log.
std::function<void(const Progress&)> progress_display(terminal::ProgressStyle style);

}  // namespace perdix::bench
