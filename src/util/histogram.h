// A histogram of latencies: log-linear buckets, that is, each power of two is divided into 128
// equal parts.
//
// Every 64-bit value has a bucket, percentiles are off by at most 0.4 % of the value (and exact
// below 256), and recording is a shift and an increment. Not thread-safe: one histogram per thread,
// merged at the end.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdix::detail::util {

class Histogram {
 public:
  void record(std::uint64_t value) noexcept {
    ++counts_[bucket_of(value)];
    ++count_;
    sum_ += static_cast<double>(value);
    max_ = std::max(max_, value);
    min_ = std::min(min_, value);
  }

  void merge(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
  }

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t max() const noexcept { return max_; }
  std::uint64_t min() const noexcept { return count_ ? min_ : 0; }
  double mean() const noexcept { return count_ ? sum_ / static_cast<double>(count_) : 0; }

  /// The smallest value that at least `percent` per cent of the recorded values do not exceed; 0 if
  /// nothing was recorded. percent in [0, 100]; 100 is the maximum, exactly.
  std::uint64_t percentile(double percent) const noexcept {
    assert(percent >= 0 && percent <= 100);
    const double wanted = std::ceil(percent / 100 * static_cast<double>(count_));
    const std::uint64_t rank =
        std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_ + !count_);
    if (rank >= count_) return max_;
    std::uint64_t seen = 0;
    std::size_t bucket = 0;
    while ((seen += counts_[bucket]) < rank) ++bucket;
    return std::clamp(middle_of(bucket), min_, max_);
  }

 private:
  static constexpr int kPartBits = 7;
  static constexpr std::size_t kParts = std::size_t{1} << kPartBits;
  static constexpr std::size_t kBuckets = (64 - kPartBits + 1) * kParts;

  // A value below 2 * kParts is its own bucket; above, the bucket is named by the exponent and the
  // next seven bits.
  static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kPartBits - 1);
    return static_cast<std::size_t>(shift) * kParts + static_cast<std::size_t>(value >> shift);
  }

  static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
    if (bucket < 2 * kParts) return bucket;
    const std::size_t shift = bucket / kParts - 1;
    const std::uint64_t low = static_cast<std::uint64_t>(bucket - shift * kParts) << shift;
    return low + (std::uint64_t{1} << shift) / 2;
  }

  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(kBuckets);
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::uint64_t max_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
};

}  // namespace perdix::detail::util
