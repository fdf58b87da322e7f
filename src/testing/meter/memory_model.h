// Cache, prefetcher and device together: what a processor's loads, stores and flushes of PM lines
// cost on the memory bus and on the media. Not thread-safe; deterministic.
#pragma once

#include <cstdint>

#include "testing/meter/cpu_cache.h"
#include "testing/meter/device.h"
#include "testing/meter/options.h"
#include "testing/meter/prefetcher.h"

namespace perdix::testing {

class MemoryModel {
 public:
  explicit MemoryModel(const MeterOptions& options);

  void load(std::uint64_t line) { access(line, false); }

  /// A line that is not cached is read first, as a processor must for a store of less than a line.
  void store(std::uint64_t line) { access(line, true); }

  /// A store of a whole line past the cache, which loses the line.
  void stream(std::uint64_t line);

  /// ADR: writes the line back if it is dirty; it stays cached. eADR: nothing.
  void flush(std::uint64_t line);

  /// Brings lines of DRAM into the cache that will not be used again.
  void pollute(std::uint64_t lines);

  /// Since the model was made. Lines that are still dirty are not in it.
  const DeviceTraffic& traffic() const noexcept { return device_.traffic(); }

 private:
  void access(std::uint64_t line, bool write);
  void fetch(std::uint64_t line, bool dirty);
  void insert(std::uint64_t line, bool dirty);

  Platform platform_;
  CpuCache cache_;
  Prefetcher prefetcher_;
  Device device_;
  std::uint64_t last_line_ = ~std::uint64_t{0};
  std::uint64_t next_dram_line_;
};

}  // namespace perdix::testing
