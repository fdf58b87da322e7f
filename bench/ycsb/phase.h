// Executes a plan on one or several stores, with one thread for each share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ycsb/store.h"

namespace perdix::bench {

struct PhaseOptions {
  std::uint64_t seed = 1;
  std::uint32_t sample_every = 32;
  const std::atomic<bool>* stop = nullptr;
  Meter* meter = nullptr;
  std::function<void(std::uint64_t done)>
      on_progress;  ///< called about ten times a second, by one thread
};

struct PhaseResult {
  double seconds = 0;  ///< from the first thread's first operation to the last thread's last
  std::uint64_t done = 0;
  std::uint64_t wrong = 0;
  std::uint64_t checksum = 0;
  detail::util::Histogram latency;
  // From Trial::run() only:
  std::vector<Count> counts = {};  ///< of the meter
  std::optional<std::uint64_t> device_bytes =
      {};  ///< that the device of the files was told to write

  /// Operations per second.
  double throughput() const { return static_cast<double>(done) / std::max(seconds, 1e-9); }
};

/// Share t is executed on stores[t % stores.size()]. Rethrows what a thread threw.
PhaseResult run_phase(std::span<Store* const> stores, const std::vector<std::span<const Op>>& plan,
                      const PhaseOptions& options);

inline PhaseResult run_phase(Store& store, const std::vector<std::span<const Op>>& plan,
                             const PhaseOptions& options) {
  Store* const one = &store;
  return run_phase({&one, 1}, plan, options);
}

}  // namespace perdix::bench
