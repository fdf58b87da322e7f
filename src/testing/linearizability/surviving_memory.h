// What a crash leaves of a region of PM: everything that was stored where caches survive; else what
// was flushed and fenced, and of each other line its last durable state or its present one: only
// one line survives, or only one is lost, or chance decides for each. If flushes or fences were
// left out, all is lost that is not durable, or only what is due to that.
//
// A probe tells it of stores, flushes and fences. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "util/random.h"

namespace perdix::testing {

class SurvivingMemory {
 public:
  /// All that the region holds now is durable. Without `needs_flushes` nothing is tracked.
  SurvivingMemory(std::span<std::byte> region, bool needs_flushes);

  void wrote(const void* p, std::size_t n);
  void flushed(const void* p, std::size_t n);
  void fenced();

  /// Instead of flushed() or fenced(), where the call is left out.
  void missed_flush(const void* p, std::size_t n);
  void missed_fence();

  /// Whether something would be durable now if nothing had been left out.
  bool misses() const;

  /// What is left if the crash comes now.
  std::vector<std::byte> image(util::Random& random) const;

 private:
  static constexpr std::size_t kLine = 64;

  // A line as it was when it was flushed. A flush that another thread's later one overtook must not
  // bring the old content back, hence the order.
  struct Flush {
    std::size_t line;
    std::uint64_t order;
    std::vector<std::byte> content;
  };

  std::vector<std::size_t> dirty() const;

  template <class Act>
  void each_line(const void* p, std::size_t n, const Act& act) const;

  std::span<std::byte> region_;
  bool needs_flushes_;
  mutable std::mutex mutex_;
  std::vector<std::byte> durable_;
  std::set<std::size_t> stored_;  // lines that may differ from durable_
  std::map<std::size_t, std::uint64_t> durable_order_;
  std::map<std::thread::id, std::vector<Flush>> flushes_;
  std::uint64_t flush_count_ = 0;
  std::set<std::size_t> missed_;  // lines that would be durable
};

}  // namespace perdix::testing
