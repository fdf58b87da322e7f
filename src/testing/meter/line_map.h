// Numbers the lines of PM independently of where the pool is mapped, so that a run counts the same
// in every process: each aligned 2 MiB of addresses gets the next free 2 MiB when it is first
// touched, as if the kernel mapped huge pages on demand. Not thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace perdix::testing {

inline constexpr std::uint64_t kLineBytes = 64;

class LineMap {
 public:
  /// The number of the line that contains this address. Neighbours within 2 MiB stay neighbours.
  std::uint64_t line_of(std::uintptr_t address) {
    const std::uintptr_t region = address / kRegionBytes;
    if (region != last_region_) {
      last_number_ = numbers_.try_emplace(region, numbers_.size()).first->second;
      last_region_ = region;
    }
    return (last_number_ * kRegionBytes + address % kRegionBytes) / kLineBytes;
  }

 private:
  static constexpr std::uint64_t kRegionBytes = 2 << 20;

  std::unordered_map<std::uintptr_t, std::uint64_t> numbers_;
  std::uintptr_t last_region_ = UINTPTR_MAX;
  std::uint64_t last_number_ = 0;
};

}  // namespace perdix::testing
