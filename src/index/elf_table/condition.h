// The conditions of a query as ranges of keys. A dictionary turns the ranges into codes
// (Dictionary::admitted()), and inserted rows, which have no codes, are tested by their keys
// (Condition::admits()): so both give the same answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/elf_table/key.h"
#include "index/elf_table/schema.h"

namespace perdix::detail::index::elf_table {

/// The numbers from `lower` to `upper`, both included.
struct NumberRange {
  std::uint64_t lower;
  std::uint64_t upper;
};

/// The strings from `from` on that are below `to`, or all from `from` on if there is no `to`. A
/// range that includes s as its last string has s followed by a zero byte as `to`: no string is
/// between.
struct StringRange {
  std::string from;
  std::optional<std::string> to;
};

/// A condition on one column: its key must be in one of some ranges, which ascend and do not
/// overlap. Without ranges no key fulfils it.
struct Condition {
  unsigned column;
  std::vector<NumberRange> numbers;  ///< the ranges, unless the column is of strings
  std::vector<StringRange> strings;  ///< the ranges of a column of strings

  /// Whether a key of the column, which has this type, fulfils the condition.
  bool admits(ElfType type, const Key& key) const;
};

/// Returns one condition for each predicate. Throws invalid_argument for predicates that ElfTable
/// does not allow (perdix/elf_table.h).
std::vector<Condition> conditions_of(const Schema& schema, ElfTable::Where where);

}  // namespace perdix::detail::index::elf_table
