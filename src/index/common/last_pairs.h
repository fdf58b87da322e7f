// The words of the last pairs up to a key, the nearest first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "index/common/codec.h"

namespace perdix::detail::index {

/// Not thread-safe. What the words refer to is readable as long as the caller's Guard.
class LastPairs {
 public:
  static constexpr std::size_t kMax = 64;

  struct Words {
    Word key;
    Word value;
  };

  /// At least one; there is room for kMax.
  explicit LastPairs(std::size_t limit) : limit_(std::clamp<std::size_t>(limit, 1, kMax)) {}

  std::size_t limit() const { return limit_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == limit_; }
  const Words& farthest() const { return pairs_[size_ - 1]; }
  std::span<const Words> pairs() const { return std::span(pairs_).first(size_); }

  void clear() { size_ = 0; }

  /// Adds a pair that is below all others. Only if it is not full.
  void add(Word key, Word value) { pairs_[size_++] = {key, value}; }

 private:
  std::array<Words, kMax> pairs_;
  std::size_t limit_;
  std::size_t size_ = 0;
};

}  // namespace perdix::detail::index
