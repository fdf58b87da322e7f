// Makes the figures of a file.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/report.h"
#include "figure/file.h"
#include "ycsb/config.h"

namespace perdix::bench {

struct FigureConfig {
  FigureFile file;
  std::vector<std::string> figures;  ///< empty: all that the systems and this build allow
  std::vector<std::string> systems;  ///< empty: those of the file that this build has
  std::uint64_t repeat = 1;          ///< rounds; medians are reported
  std::uint64_t seed = 1;
  std::filesystem::path pool_dir;  ///< empty: chosen
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true
};

/// Throws perdix::Error invalid_argument if the configuration makes no sense.
void validate(const FigureConfig& config);

/// Throws perdix::Error if the configuration makes no sense or a system fails, Cancelled after
/// `config.stop`. Must be called while the process has one thread, because it forks.
ExperimentReport run(const FigureConfig& config);

}  // namespace perdix::bench
