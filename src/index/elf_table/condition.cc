#include "index/elf_table/condition.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::elf_table {
namespace {

using Op = ElfPredicate::Op;

[[noreturn]] void throw_invalid(const ElfColumn& column, const char* what) {
  throw Error(Errc::invalid_argument, fmt::format("column '{}': {}", column.name, what));
}

void require_values(const ElfColumn& column, const ElfPredicate& predicate) {
  if (predicate.op > Op::prefix) throw_invalid(column, "there is no such condition");
  if (predicate.op == Op::in) return;
  const std::size_t wanted = predicate.op == Op::between ? 2 : 1;
  if (predicate.values.size() != wanted)
    throw_invalid(column, wanted == 2 ? "between takes two values" : "the condition takes a value");
  if (predicate.op == Op::prefix && column.type != ElfType::string)
    throw_invalid(column, "only strings have prefixes");
}

/// The least string above all that begin with `prefix`; none if there is none, as behind "\xff".
std::optional<std::string> behind_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

/// The least string above `bytes`.
std::string behind(std::string bytes) { return std::move(bytes) + '\0'; }

/// Adds the range of an operation other than `in`. `a` and `b` are its first and last value.
void add_strings(Condition& condition, Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::less: return condition.strings.push_back({"", a});
    case Op::at_most: return condition.strings.push_back({"", behind(a)});
    case Op::greater: return condition.strings.push_back({behind(a), std::nullopt});
    case Op::at_least: return condition.strings.push_back({a, std::nullopt});
    case Op::prefix: return condition.strings.push_back({a, behind_prefix(a)});
    default: return condition.strings.push_back({a, behind(b)});
  }
}

void add_numbers(Condition& condition, Op op, std::uint64_t a, std::uint64_t b, std::uint64_t max) {
  switch (op) {
    case Op::less:
      if (a > 0) condition.numbers.push_back({0, a - 1});
      return;
    case Op::at_most: return condition.numbers.push_back({0, a});
    case Op::greater:
      if (a < max) condition.numbers.push_back({a + 1, max});
      return;
    case Op::at_least: return condition.numbers.push_back({a, max});
    default: return condition.numbers.push_back({a, b});
  }
}

void add_ranges(Condition& condition, const ElfColumn& column, const ElfPredicate& predicate) {
  const Key a = key_of(column, predicate.values.front());
  const Key b = key_of(column, predicate.values.back());
  if (a.number > b.number || a.bytes > b.bytes) throw_invalid(column, "the bounds cross");
  if (column.type == ElfType::string) {
    add_strings(condition, predicate.op, std::string(a.bytes), std::string(b.bytes));
  } else {
    add_numbers(condition, predicate.op, a.number, b.number, max_number(column.type));
  }
}

void add_values(Condition& condition, const ElfColumn& column, const ElfPredicate& predicate) {
  for (const ElfValue& value : predicate.values) {
    const Key key = key_of(column, value);
    if (column.type == ElfType::string) {
      condition.strings.push_back({std::string(key.bytes), behind(std::string(key.bytes))});
    } else {
      condition.numbers.push_back({key.number, key.number});
    }
  }
  const auto order = [](auto& ranges, auto lower) {
    std::sort(ranges.begin(), ranges.end(),
              [&](const auto& x, const auto& y) { return x.*lower < y.*lower; });
    const auto same = [&](const auto& x, const auto& y) { return x.*lower == y.*lower; };
    ranges.erase(std::unique(ranges.begin(), ranges.end(), same), ranges.end());
  };
  order(condition.numbers, &NumberRange::lower);
  order(condition.strings, &StringRange::from);
}

}  // namespace

bool Condition::admits(ElfType type, const Key& key) const {
  if (type == ElfType::string) {
    const auto behind = std::partition_point(
        strings.begin(), strings.end(), [&](const StringRange& r) { return r.from <= key.bytes; });
    return behind != strings.begin() && (!behind[-1].to || key.bytes < *behind[-1].to);
  }
  const auto behind = std::partition_point(
      numbers.begin(), numbers.end(), [&](const NumberRange& r) { return r.lower <= key.number; });
  return behind != numbers.begin() && key.number <= behind[-1].upper;
}

std::vector<Condition> conditions_of(const Schema& schema, ElfTable::Where where) {
  std::vector<Condition> conditions;
  for (const ElfPredicate& predicate : where) {
    Condition condition{column_number(schema, predicate.column), {}, {}};
    const ElfColumn& column = schema[condition.column];
    require_values(column, predicate);
    if (predicate.op == Op::in) {
      add_values(condition, column, predicate);
    } else {
      add_ranges(condition, column, predicate);
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace perdix::detail::index::elf_table
