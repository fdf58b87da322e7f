// A counter that many threads increment and few read: one cache line per stripe of threads.
//
// Thread-safe. `sum` adds up the stripes one after the other, so while others add it returns
// something between the true values before and after; when nothing is added it is exact.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "util/stripe.h"

namespace perdix::detail::util {

class StripedCounter {
 public:
  void add(std::int64_t delta) noexcept {
    if (delta == 0) return;  // an atomic addition waits for the stores before it
    // relaxed: a count orders nothing.
    stripes_[current_stripe()].value.fetch_add(delta, std::memory_order_relaxed);
  }

  std::int64_t sum() const noexcept {
    std::int64_t total = 0;
    for (const Stripe& stripe : stripes_) total += stripe.value.load(std::memory_order_relaxed);
    return total;
  }

 private:
  struct alignas(kCacheLine) Stripe {
    std::atomic<std::int64_t> value{0};
  };

  std::array<Stripe, kStripes> stripes_;
};

}  // namespace perdix::detail::util
