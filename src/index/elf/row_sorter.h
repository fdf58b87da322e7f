// Sorts row numbers by the value that a function has for them. Stable.
//
// Few rows by comparison, many by radix, one pass for each 11 bits in which their values differ.
// Not thread-safe; keeps its memory for the next call.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "index/elf/progress.h"

namespace perdix::detail::index::elf {

class RowSorter {
 public:
  /// Sorts `rows`. `scratch` has as many elements, of any value. Passes over all rows go through
  /// `steps`.
  template <class Value>
  void sort(std::span<std::uint32_t> rows, std::span<std::uint32_t> scratch, const Value& value,
            Steps& steps) {
    if (rows.size() <= kFew) return sort_few(rows, value);
    std::uint32_t least = ~std::uint32_t{0}, most = 0, before = 0;
    bool sorted = true;
    each(rows, steps, [&](std::uint32_t row) {
      const std::uint32_t here = value(row);
      least = std::min(least, here);
      most = std::max(most, here);
      sorted &= before <= here;
      before = here;
    });
    if (sorted) return;
    const auto bits = static_cast<unsigned>(std::bit_width(most - least));
    std::uint32_t* from = rows.data();
    std::uint32_t* to = scratch.data();
    for (unsigned shift = 0; shift < bits; shift += kBits) {
      pass(
          {from, rows.size()}, to,
          [&](std::uint32_t row) { return (value(row) - least) >> shift & (kBuckets - 1); }, steps);
      std::swap(from, to);
    }
    if (from != rows.data()) std::copy_n(from, rows.size(), rows.data());
  }

 private:
  static constexpr std::size_t kFew = 64;
  static constexpr unsigned kBits = 11;
  static constexpr std::uint32_t kBuckets = 1 << kBits;

  /// The row's place is part of the key, so the order of equal values stays.
  template <class Value>
  void sort_few(std::span<std::uint32_t> rows, const Value& value) {
    struct Key {
      std::uint64_t key;
      std::uint32_t row;
      bool operator<(const Key& other) const { return key < other.key; }
    };
    std::array<Key, kFew> keys;
    for (std::size_t i = 0; i < rows.size(); ++i)
      keys[i] = {std::uint64_t{value(rows[i])} << 32 | i, rows[i]};
    std::sort(keys.begin(), keys.begin() + rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = keys[i].row;
  }

  template <class Digit>
  void pass(std::span<const std::uint32_t> rows, std::uint32_t* to, const Digit& digit,
            Steps& steps) {
    ends_.fill(0);
    each(rows, steps, [&](std::uint32_t row) { ++ends_[digit(row)]; });
    std::uint32_t begin = 0;
    for (std::uint32_t& end : ends_) begin += std::exchange(end, begin);
    each(rows, steps, [&](std::uint32_t row) { to[ends_[digit(row)]++] = row; });
  }

  /// Calls fn(row) for each row, and steps.pass() for some at a time.
  template <class Fn>
  static void each(std::span<const std::uint32_t> rows, Steps& steps, const Fn& fn) {
    constexpr std::size_t kPiece = std::size_t{1} << 12;
    for (; !rows.empty(); rows = rows.subspan(std::min(kPiece, rows.size()))) {
      const auto piece = rows.first(std::min(kPiece, rows.size()));
      for (const std::uint32_t row : piece) fn(row);
      steps.pass(piece.size());
    }
  }

  std::array<std::uint32_t, kBuckets> ends_;
};

}  // namespace perdix::detail::index::elf
