// What a run does.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace perdix::bench::resumption {

inline constexpr std::size_t kMaxMoments = 32;

struct Progress {
  std::string step;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: unknown
};

struct Config {
  std::vector<std::uint64_t> keys = {1'000'000, 2'000'000, 5'000'000, 10'000'000};
  /// Milliseconds after the restart at which answers are counted.
  std::vector<std::uint64_t> within = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  std::uint64_t repeat = 3;
  std::uint64_t threads = 1;       ///< that look keys up
  std::uint64_t load_threads = 2;  ///< that load
  std::uint64_t seed = 1;
  std::filesystem::path pool_dir;  ///< empty: chosen
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true
};

/// Throws perdix::Error if the configuration makes no sense.
void validate(const Config& config);

}  // namespace perdix::bench::resumption
