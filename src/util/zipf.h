// The skewed choices of the YCSB workloads: zipfian, scrambled zipfian and latest.
//
// Item k of n is drawn with probability proportional to 1 / (k + 1)^theta. Draws are exact, by
// rejection-inversion (W. Hoermann and G. Derflinger, "Rejection-inversion to generate variates
// from monotone discrete distributions", 1996): the smooth curve x^-theta is integrated and
// inverted, and the few points that fall outside the steps are drawn again. So there is no sum over
// n items: setting up costs the same for ten items and for a billion, and n may grow. Const calls
// are thread-safe; each thread passes its own Random.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>

#include "util/hash.h"
#include "util/random.h"

namespace perdix::detail::util {

class Zipf {
 public:
  static constexpr double kYcsbTheta = 0.99;

  /// n items, 1 <= n <= 2^52; theta in (0, 2), where 0 would be uniform and 1 is Zipf's law.
  explicit Zipf(std::uint64_t n, double theta = kYcsbTheta)
      : theta_(theta), low_(area(1.5) - 1), squeeze_(2 - inverse_area(area(2.5) - height(2))) {
    assert(theta > 0 && theta < 2);
    resize(n);
  }

  void resize(std::uint64_t n) {
    assert(n >= 1 && n <= (std::uint64_t{1} << 52));
    n_ = n;
    high_ = area(static_cast<double>(n) + 0.5);
  }

  std::uint64_t size() const noexcept { return n_; }

  /// A rank in [0, n); rank 0 is the most frequent.
  std::uint64_t operator()(Random& random) const {
    for (;;) {
      const double u = high_ + random.uniform() * (low_ - high_);
      const double x = inverse_area(u);
      const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
      if (k - x <= squeeze_ || u >= area(k + 0.5) - height(k))
        return static_cast<std::uint64_t>(k) - 1;
    }
  }

 private:
  double height(double x) const { return std::exp(-theta_ * std::log(x)); }

  // The integral of height from 1 to x. The ratio expm1(t) / t tends to 1 with t, which covers
  // theta = 1.
  double area(double x) const {
    const double log_x = std::log(x);
    const double t = (1 - theta_) * log_x;
    return std::abs(t) > 1e-8 ? std::expm1(t) / t * log_x : (1 + t / 2) * log_x;
  }

  double inverse_area(double a) const {
    const double t = std::max(a * (1 - theta_), -1.0);
    const double ratio = std::abs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2;
    return std::exp(ratio * a);
  }

  double theta_;
  double low_;
  double squeeze_;
  double high_ = 0;
  std::uint64_t n_ = 0;
};

/// Zipfian, with the popular items spread over the whole range rather than next to each other.
class ScrambledZipf {
 public:
  explicit ScrambledZipf(std::uint64_t n, double theta = Zipf::kYcsbTheta) : zipf_(n, theta) {}

  void resize(std::uint64_t n) { zipf_.resize(n); }

  std::uint64_t operator()(Random& random) const {
    const auto spread = static_cast<unsigned __int128>(hash(zipf_(random)));
    return static_cast<std::uint64_t>((spread * zipf_.size()) >> 64);
  }

 private:
  Zipf zipf_;
};

/// Zipfian by age: the item inserted last is the most popular. `resize` after each insertion is
/// cheap.
class Latest {
 public:
  explicit Latest(std::uint64_t n, double theta = Zipf::kYcsbTheta) : zipf_(n, theta) {}

  void resize(std::uint64_t n) { zipf_.resize(n); }

  std::uint64_t operator()(Random& random) const { return zipf_.size() - 1 - zipf_(random); }

 private:
  Zipf zipf_;
};

}  // namespace perdix::detail::util
