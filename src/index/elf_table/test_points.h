// What tests must know of ElfTable: rows of all types, and what conditions on them mean, by brute
// force. Its presence tells CMake that this is an engine without pairs.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <perdix/elf_table.h>

#include "util/random.h"

namespace perdix::detail::index::elf_table {

inline const std::vector<ElfColumn> kAllTypes = {{"i", ElfType::int32},
                                                 {"l", ElfType::int64},
                                                 {"g", ElfType::float64},
                                                 {"d", ElfType::date},
                                                 {"s", ElfType::string}};

/// A value of a type, of which many are equal, with the ends of the range among them.
inline ElfValue random_value(util::Random& random, ElfType type) {
  const auto small = static_cast<std::int32_t>(random.below(9)) - 4;
  const bool rare = random.one_in(6);
  switch (type) {
    case ElfType::int32:
      if (rare)
        return random.one_in(2) ? std::numeric_limits<std::int32_t>::min()
                                : std::numeric_limits<std::int32_t>::max();
      return small;
    case ElfType::int64:
      if (rare) return static_cast<std::int64_t>(random());
      return std::int64_t{small} << 33;
    case ElfType::float64: {
      using Limits = std::numeric_limits<double>;
      const std::vector<double> ends = {-0.0, Limits::infinity(), -Limits::infinity(),
                                        Limits::denorm_min(), -Limits::max()};
      return rare ? ends[random.below(ends.size())] : small / 4.0;
    }
    case ElfType::date: return ElfDate{rare ? small - 20000 : small};
    default: {
      const std::vector<std::string> ends = {"",     std::string(1, '\0'), std::string("a\0b", 3),
                                             "\xff", "\xff\xff",           "a"};
      return rare ? ends[random.below(ends.size())]
                  : "a" + std::string(random.below(3), 'b') + std::to_string(random.below(4));
    }
  }
}

inline ElfTable::Row random_row(util::Random& random, const std::vector<ElfColumn>& columns) {
  ElfTable::Row row;
  for (const ElfColumn& column : columns) row.push_back(random_value(random, column.type));
  return row;
}

/// Values have an order of their own: that of the variant, whose alternatives have theirs.
inline bool less(const ElfValue& a, const ElfValue& b) { return a < b; }

inline bool meets(const ElfValue& value, const ElfPredicate& predicate) {
  using Op = ElfPredicate::Op;
  const auto& values = predicate.values;
  switch (predicate.op) {
    case Op::equal: return value == values[0];
    case Op::less: return less(value, values[0]);
    case Op::at_most: return !less(values[0], value);
    case Op::greater: return less(values[0], value);
    case Op::at_least: return !less(value, values[0]);
    case Op::between: return !less(value, values[0]) && !less(values[1], value);
    case Op::in: return std::find(values.begin(), values.end(), value) != values.end();
    case Op::prefix:
      return std::get<std::string>(value).starts_with(std::get<std::string>(values[0]));
  }
  return false;
}

inline ElfPredicate random_predicate(util::Random& random, const ElfColumn& column) {
  using Op = ElfPredicate::Op;
  const bool is_string = column.type == ElfType::string;
  const auto op = static_cast<Op>(random.below(is_string ? 8 : 7));
  ElfPredicate predicate{column.name, op, {random_value(random, column.type)}};
  if (op == Op::between) {
    predicate.values.push_back(random_value(random, column.type));
    std::sort(predicate.values.begin(), predicate.values.end());
  }
  if (op == Op::in) {
    for (std::uint64_t i = random.below(12); i > 0; --i)
      predicate.values.push_back(random_value(random, column.type));
  }
  return predicate;
}

/// Some conditions, perhaps several on a column.
inline std::vector<ElfPredicate> random_where(util::Random& random,
                                              const std::vector<ElfColumn>& columns) {
  std::vector<ElfPredicate> where;
  for (std::uint64_t i = random.below(4); i > 0; --i)
    where.push_back(random_predicate(random, columns[random.below(columns.size())]));
  return where;
}

/// The rows that a table should have.
class TableModel {
 public:
  explicit TableModel(std::vector<ElfColumn> schema) : columns(std::move(schema)) {}

  const std::vector<ElfColumn> columns;
  std::map<std::uint32_t, ElfTable::Row> rows;

  std::vector<std::uint32_t> select(std::span<const ElfPredicate> where) const {
    std::vector<std::uint32_t> tids;
    for (const auto& [tid, row] : rows) {
      if (meets_all(row, where)) tids.push_back(tid);
    }
    return tids;
  }

 private:
  bool meets_all(const ElfTable::Row& row, std::span<const ElfPredicate> where) const {
    return std::all_of(where.begin(), where.end(), [&](const ElfPredicate& predicate) {
      const auto column = std::find_if(columns.begin(), columns.end(), [&](const ElfColumn& c) {
        return c.name == predicate.column;
      });
      return meets(row[static_cast<std::size_t>(column - columns.begin())], predicate);
    });
  }
};

/// Rows as columns of a build.
class TypedColumns {
 public:
  explicit TypedColumns(const std::vector<ElfColumn>& columns) : types_(columns) {
    i_.resize(columns.size());
    l_.resize(columns.size());
    g_.resize(columns.size());
    d_.resize(columns.size());
    s_.resize(columns.size());
  }

  void add(const ElfTable::Row& row) {
    for (std::size_t c = 0; c < types_.size(); ++c) {
      switch (types_[c].type) {
        case ElfType::int32: i_[c].push_back(std::get<std::int32_t>(row[c])); break;
        case ElfType::int64: l_[c].push_back(std::get<std::int64_t>(row[c])); break;
        case ElfType::float64: g_[c].push_back(std::get<double>(row[c])); break;
        case ElfType::date: d_[c].push_back(std::get<ElfDate>(row[c])); break;
        case ElfType::string: s_[c].push_back(std::get<std::string>(row[c])); break;
      }
    }
  }

  std::vector<ElfColumnData> data() const {
    std::vector<ElfColumnData> data;
    for (std::size_t c = 0; c < types_.size(); ++c) {
      switch (types_[c].type) {
        case ElfType::int32: data.emplace_back(std::span(i_[c])); break;
        case ElfType::int64: data.emplace_back(std::span(l_[c])); break;
        case ElfType::float64: data.emplace_back(std::span(g_[c])); break;
        case ElfType::date: data.emplace_back(std::span(d_[c])); break;
        case ElfType::string: data.emplace_back(std::span(s_[c])); break;
      }
    }
    return data;
  }

 private:
  const std::vector<ElfColumn> types_;
  std::vector<std::vector<std::int32_t>> i_;
  std::vector<std::vector<std::int64_t>> l_;
  std::vector<std::vector<double>> g_;
  std::vector<std::vector<ElfDate>> d_;
  std::vector<std::vector<std::string>> s_;
};

}  // namespace perdix::detail::index::elf_table
