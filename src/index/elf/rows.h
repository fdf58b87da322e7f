// Rows that a build reads: the caller's columns, or a batch in DRAM where the rows of one part of
// the table lie together.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "index/elf/box.h"
#include "index/elf/node.h"
#include "util/huge_vector.h"

namespace perdix::detail::index::elf {

/// Columns of equal length; a row's number is its TID.
class ColumnRows {
 public:
  explicit ColumnRows(std::span<const std::span<const std::uint32_t>> columns)
      : columns_(columns) {}

  std::uint32_t value(std::uint32_t row, unsigned dimension) const {
    return columns_[dimension][row];
  }
  Tid tid(std::uint32_t row) const { return row; }

 private:
  std::span<const std::span<const std::uint32_t>> columns_;
};

/// Rows of all values from one dimension on, each of them in one piece with its TID.
class Batch {
 public:
  /// Empties it.
  void begin(unsigned first_dimension, unsigned dimensions) {
    first_ = first_dimension;
    width_ = dimensions - first_dimension + 1;
    words_.clear();
  }

  /// The words of a new row: its values, then its TID.
  std::uint32_t* add() {
    words_.resize(words_.size() + width_);
    return words_.data() + words_.size() - width_;
  }

  void set(std::uint32_t row, unsigned dimension, std::uint32_t value) {
    words_[row * width_ + (dimension - first_)] = value;
  }
  void set_tid(std::uint32_t row, Tid tid) { words_[row * width_ + width_ - 1] = tid; }

  std::size_t size() const { return words_.size() / width_; }
  std::uint32_t value(std::uint32_t row, unsigned dimension) const {
    return words_[row * width_ + (dimension - first_)];
  }
  Tid tid(std::uint32_t row) const { return words_[row * width_ + width_ - 1]; }

 private:
  unsigned first_ = 0;
  std::size_t width_ = 1;
  util::HugeVector<std::uint32_t> words_;
};

}  // namespace perdix::detail::index::elf
