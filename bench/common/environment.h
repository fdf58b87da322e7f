// Where a run was made and what took part, for the head of its report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace perdix::bench {

struct Environment {
  std::string directory;  ///< of the run's files
  std::string file_system;
  std::string machine;  ///< processor, number of CPUs and kernel
  std::string build;    ///< compiler, optimisation and whether it is instrumented
};

Environment environment_of(const std::filesystem::path& directory);

struct SystemInfo {
  std::string name;
  bool persistent = false;  ///< its records survive the end of the process
  std::string settings;
  std::uint64_t threads = 0;  ///< that the settings are for; 0: any number
};

/// Returns the median time between two consecutive readings of the clock in nanoseconds. Sampling
/// adds that time to a latency.
double clock_cost_nanoseconds();

}  // namespace perdix::bench
