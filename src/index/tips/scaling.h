// How many workers replay the operational logs (paper, 4.2.1): as many as it takes to keep up with
// the writers, and not more than make it faster.
//
//   scaling.adapt(written, replayed, seconds);   // after each replay
//   scaling.workers();                           // for the next one
//
// The ratio of the writes made during a replay to the writes that it replayed decides. Above 1 the
// number of workers grows, below 1/2 it shrinks. The step is 1 up to about four workers, and 4
// beyond. If the largest number is not enough either, the number that has replayed fastest is used
// from then on, until a ratio below 1/2 makes it shrink.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perdix::detail::index::tips {

class Scaling {
 public:
  Scaling(unsigned min, unsigned max) : min_(min), max_(max), workers_(min) {}

  unsigned workers() const { return workers_; }

  /// Takes the result of a replay into account: `written` writes came while it replayed `replayed`
  /// in `seconds`. A replay of nothing changes nothing.
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
    if (workers_ == max_) {
      workers_ = best_;
      settled_ = true;
    } else {
      workers_ = std::min(max_, workers_ + step);
    }
  }

  void shrink() {
    const unsigned step = workers_ <= kFew ? 1 : kLargeStep;
    workers_ = workers_ > min_ + step ? workers_ - step : min_;
    settled_ = false;
    best_rate_ = 0;
  }

  const unsigned min_, max_;
  unsigned workers_;
  unsigned best_ = 1;
  double best_rate_ = 0;
  bool settled_ = false;  // workers_ is best_, and does not grow until it has shrunk
};

}  // namespace perdix::detail::index::tips
