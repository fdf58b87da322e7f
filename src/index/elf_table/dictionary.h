// The dictionary of one column, in PM: translates its codes, 32-bit numbers in the order of the
// column's values, to keys, and conditions to codes. Columns of int32 and date have none in PM:
// their codes are their keys.
//
// Immutable, so thread-safe. Offsets from PM are checked before they are followed.
#pragma once

#include <cstdint>
#include <vector>

#include <perdix/elf.h>

#include "index/elf_table/condition.h"
#include "index/elf_table/layout.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf_table {

class Dictionary {
 public:
  /// Opens the dictionary of a column. Throws corrupt.
  Dictionary(const pool::PoolCore& pool, const ElfColumn& column, const ColumnLayout& layout);

  /// All codes are below this number.
  std::uint64_t size() const { return size_; }

  /// Bytes that the dictionary takes in PM.
  std::uint64_t bytes() const {
    return keys_ == nullptr ? 0 : size_ * sizeof(std::uint64_t) + bytes_end_;
  }

  /// The key with that code. Throws corrupt if there is no such code.
  Key key(std::uint32_t code) const;

  /// The codes that a condition on this column admits: intervals that ascend, with other codes
  /// between them. Throws corrupt.
  std::vector<ElfInterval> admitted(const Condition& condition) const;

 private:
  std::uint64_t first_at_least(std::uint64_t number) const;
  std::uint64_t first_at_least(std::string_view bytes) const;
  std::string_view word(std::uint64_t code) const;

  const pool::PoolCore& pool_;
  const ElfType type_;
  std::uint64_t size_;
  const std::uint64_t* keys_ = nullptr;  // null: codes are keys
  const char* bytes_ = nullptr;          // of all strings, one behind the other
  std::uint64_t bytes_end_ = 0;
};

}  // namespace perdix::detail::index::elf_table
