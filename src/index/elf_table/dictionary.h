// The codes of one column, in PM: 32-bit numbers with the order of the column's values.
//
// Immutable, so thread-safe. Contents of a damaged file are checked where they are followed.
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
  /// Throws corrupt.
  Dictionary(const pool::PoolCore& pool, const ElfColumn& column, const ColumnLayout& layout);

  /// Codes are below it.
  std::uint64_t size() const { return size_; }

  /// How many bytes the words take in PM.
  std::uint64_t bytes() const {
    return keys_ == nullptr ? 0 : size_ * sizeof(std::uint64_t) + bytes_end_;
  }

  /// The key with that code. Throws corrupt if there is no such code.
  Key key(std::uint32_t code) const;

  /// The codes that a condition admits: intervals that ascend and do not touch.
  std::vector<ElfInterval> admitted(const Condition& condition) const;

 private:
  std::uint64_t first_at_least(std::uint64_t number) const;
  std::uint64_t first_at_least(std::string_view bytes) const;
  std::string_view word(std::uint64_t code) const;

  const pool::PoolCore& pool_;
  const ElfType type_;
  std::uint64_t size_;
  const std::uint64_t* keys_ = nullptr;  // null: codes are keys
  const char* bytes_ = nullptr;          // of strings
  std::uint64_t bytes_end_ = 0;
};

}  // namespace perdix::detail::index::elf_table
