// How many pairs an index has, where PM does not store it. The first count that runs without
// concurrent writers is kept, and inserts and erases are counted from the opening on. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/striped_counter.h"

namespace perdix::detail::index {

class PairCount {
 public:
  // Called under the latch of the pair's place, and so before another thread can see the effect.
  void add() { added_.add(1); }
  void remove() { removed_.add(1); }

  /// Pairs that came less those that went, since the opening.
  std::int64_t change() const { return added_.sum() - removed_.sum(); }

  /// `count()` counts all pairs, those of each place at a moment when no thread has its latch. So
  /// if no pair came or went during the count, it has seen all that are counted.
  template <class Count>
  std::uint64_t get(Count count) const {
    if (at_open_.load(std::memory_order_relaxed) == kUnknown) {
      const std::int64_t added = added_.sum(), removed = removed_.sum();
      const auto pairs = static_cast<std::int64_t>(count());
      if (added_.sum() != added || removed_.sum() != removed)
        return static_cast<std::uint64_t>(pairs);
      at_open_.store(pairs - (added - removed), std::memory_order_relaxed);
    }
    return static_cast<std::uint64_t>(at_open_.load(std::memory_order_relaxed) + added_.sum() -
                                      removed_.sum());
  }

 private:
  static constexpr std::int64_t kUnknown = -1;

  util::StripedCounter added_;
  util::StripedCounter removed_;
  mutable std::atomic<std::int64_t> at_open_{kUnknown};  // pairs
};

}  // namespace perdix::detail::index
