// How many workers replay the operational logs (paper, 4.2.1): as many as it takes to keep up with
// the writers, and not more than make it faster.
//
// After each replay, R is what was written during it over what was replayed. Above 1 there will be
// more workers, below 1/2 fewer; the step is 1 below four workers and 4 from there on. Once there
// are as many as there may be, the number that replayed fastest is taken, until fewer will do.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perdix::detail::index::tips {

class Scaling {
 public:
  Scaling(unsigned least, unsigned most) : least_(least), most_(most), workers_(least) {}

  unsigned workers() const { return workers_; }

  /// A replay has ended.
  void adapt(std::uint64_t written, std::uint64_t replayed, double seconds) {
    if (replayed == 0) return;
    const double rate = static_cast<double>(replayed) / std::max(seconds, 1e-9);
    if (rate > best_rate_) best_rate_ = rate, best_ = workers_;
    if (written > replayed) {
      if (!settled_) grow();
    } else if (2 * written < replayed) {
      shrink();
    }
  }

 private:
  static constexpr unsigned kFew = 4, kLargeStep = 4;

  void grow() {
    const unsigned step = workers_ < kFew ? 1 : kLargeStep;
    if (workers_ == most_) {
      workers_ = best_;
      settled_ = true;
    } else {
      workers_ = std::min(most_, workers_ + step);
    }
  }

  void shrink() {
    const unsigned step = workers_ <= kFew ? 1 : kLargeStep;
    workers_ = workers_ > least_ + step ? workers_ - step : least_;
    settled_ = false;
    best_rate_ = 0;
  }

  const unsigned least_, most_;
  unsigned workers_;
  unsigned best_ = 1;
  double best_rate_ = 0;
  bool settled_ = false;  // at best_, until fewer will do
};

}  // namespace perdix::detail::index::tips
