// The conditions of a query as ranges of keys, so that dictionaries and inserted rows use the same
// test.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/elf_table/key.h"
#include "index/elf_table/schema.h"

namespace perdix::detail::index::elf_table {

/// Both bounds included.
struct NumberRange {
  std::uint64_t lower;
  std::uint64_t upper;
};

/// Strings from `from` on, below `to`, if there is one. The string behind s is s with a zero byte.
struct StringRange {
  std::string from;
  std::optional<std::string> to;
};

/// What one column must be: within one of some ranges, which ascend and do not overlap.
struct Condition {
  unsigned column;
  std::vector<NumberRange> numbers;  ///< unless the column is of strings
  std::vector<StringRange> strings;  ///< if it is

  bool admits(ElfType type, const Key& key) const;
};

/// Conditions from predicates. Throws invalid_argument as ElfTable says.
std::vector<Condition> conditions_of(const Schema& schema, ElfTable::Where where);

}  // namespace perdix::detail::index::elf_table
