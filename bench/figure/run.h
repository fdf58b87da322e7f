// Makes the figures of a file.
#pragma once

#include <string>
#include <vector>

#include "common/report.h"
#include "common/run_options.h"
#include "figure/file.h"

namespace perdix::bench {

struct FigureConfig : RunOptions {
  FigureFile file;
  std::vector<std::string> figures;  ///< empty: all that the systems and this build allow
  std::vector<std::string> systems;  ///< empty: those of the file that this build has
};

/// Throws perdix::Error invalid_argument if the configuration makes no sense.
void validate(const FigureConfig& config);

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`. Must be called while the process has one thread, because it forks.
Report run(const FigureConfig& config);

}  // namespace perdix::bench
