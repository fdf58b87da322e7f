#include "ycsb/warm_memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace perdix::bench {
namespace {

constexpr std::uint64_t kUnit = WarmMemory::kAhead;

std::size_t round_down(std::uint64_t bytes) {
  return static_cast<std::size_t>(bytes / kUnit * kUnit);
}

std::size_t round_up(std::uint64_t bytes) { return round_down(bytes + kUnit - 1); }

}  // namespace

std::uint64_t free_memory() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return 0;
  return std::uint64_t{info.freeram} * info.mem_unit;
}

WarmMemory::WarmMemory(std::uint64_t bytes, std::function<std::uint64_t()> free)
    : free_(std::move(free)),
      memory_(std::min(round_up(bytes), round_down(free_() / 2)), std::byte{1}),
      held_(memory_.size()) {}

void WarmMemory::begin_phase() {
  const std::lock_guard lock(mutex_);
  give_back(kAhead);
  wanted_ = free_();
}

void WarmMemory::follow() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = free_();
  if (now < wanted_) give_back(wanted_ - now);
}

std::uint64_t WarmMemory::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

/// Requires mutex_.
void WarmMemory::give_back(std::uint64_t bytes) {
  const std::size_t given = std::min(round_up(bytes), held_);
  if (given == 0) return;
  held_ -= given;
  ::madvise(memory_.data() + held_, given, MADV_DONTNEED);
}

WarmMemoryKeeper::WarmMemoryKeeper(WarmMemory& memory)
    : thread_([&memory](const std::stop_token& stop) {
        // Within this time even a fast system takes less than one unit.
        constexpr auto kInterval = std::chrono::milliseconds(5);
        while (!stop.stop_requested()) {
          memory.follow();
          std::this_thread::sleep_for(kInterval);
        }
      }) {}

}  // namespace perdix::bench
