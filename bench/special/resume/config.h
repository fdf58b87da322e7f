// What a run does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/run_options.h"

namespace perdix::bench::resumption {

inline constexpr std::size_t kMaxMoments = 32;

struct Config : RunOptions {
  Config() { repeat = 3; }

  std::vector<std::uint64_t> keys = {1'000'000, 2'000'000, 5'000'000, 10'000'000};
  /// Milliseconds after the restart at which answers are counted.
  std::vector<std::uint64_t> within = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  std::uint64_t threads = 1;       ///< that look keys up
  std::uint64_t load_threads = 2;  ///< that load
};

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::resumption
