// What all benchmarks are told, whatever they measure.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include "common/place.h"

namespace perdix::bench {

/// Where a run is, for a progress display.
struct Progress {
  std::string what;          ///< for example "sptree load, 1 thread"
  std::uint64_t done = 0;    ///< operations of this phase
  std::uint64_t total = 0;   ///< 0: unknown
  std::uint64_t phase = 0;   ///< phases finished in the whole run
  std::uint64_t phases = 0;  ///< 0: unknown
};

/// Thrown by a run after RunOptions::stop.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "the benchmark was interrupted"; }
};

struct RunOptions {
  std::uint64_t repeat = 1;        ///< rounds; medians are reported
  std::uint64_t seed = 1;          ///< of keys and choices
  std::filesystem::path pool_dir;  ///< parent of the run's files; empty: see default_parent()
  std::function<void(const Progress&)> on_progress;  ///< called about ten times a second
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true

  /// The parent of the run's files, which take about that many bytes.
  std::filesystem::path parent(std::uint64_t needed) const {
    return pool_dir.empty() ? default_parent(needed) : pool_dir;
  }

  void show(const Progress& progress) const {
    if (on_progress) on_progress(progress);
  }

  /// Throws Cancelled after `stop`.
  void check_stop() const {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Cancelled();
  }
};

}  // namespace perdix::bench
