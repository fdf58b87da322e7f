// Numbers the lines of PM independently of where the pool is mapped and of which of several equal
// structures (the allocator's lanes) a thread happens to use, so that a run counts the same in
// every process: each page of addresses gets the next free page when it is first touched, as if the
// kernel mapped pages on demand. Not thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace perdix::testing {

inline constexpr std::uint64_t kLineBytes = 64;

class LineMap {
 public:
  /// The number of the line that contains this address. Neighbours within a page stay neighbours.
  std::uint64_t line_of(std::uintptr_t address) {
    const std::uintptr_t page = address / kPageBytes;
    if (page != last_page_) {
      last_number_ = numbers_.try_emplace(page, numbers_.size()).first->second;
      last_page_ = page;
    }
    return (last_number_ * kPageBytes + address % kPageBytes) / kLineBytes;
  }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;

  std::unordered_map<std::uintptr_t, std::uint64_t> numbers_;
  std::uintptr_t last_page_ = UINTPTR_MAX;
  std::uint64_t last_number_ = 0;
};

}  // namespace perdix::testing
