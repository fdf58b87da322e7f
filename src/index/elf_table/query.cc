#include "index/elf_table/query.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::elf_table {
namespace {

std::vector<ElfInterval> intersect(std::span<const ElfInterval> a, std::span<const ElfInterval> b) {
  std::vector<ElfInterval> both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const ElfInterval common = {std::max(a[i].lower, b[j].lower), std::min(a[i].upper, b[j].upper)};
    if (common.lower <= common.upper) both.push_back(common);
    if (a[i].upper < b[j].upper) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

/// The codes that all conditions on a column admit; nullopt if there is no condition on it.
std::optional<std::vector<ElfInterval>> codes_of(const Version& version, unsigned column,
                                                 std::span<const Condition> conditions) {
  std::optional<std::vector<ElfInterval>> codes;
  for (const Condition& condition : conditions) {
    if (condition.column != column) continue;
    auto admitted = version.dictionary(column).admitted(condition);
    codes = codes ? intersect(*codes, admitted) : std::move(admitted);
  }
  return codes;
}

}  // namespace

Query::Query(const Version& version, const Schema& schema, std::span<const Condition> conditions)
    : version_(version), schema_(schema), conditions_(conditions), box_(version.elf().box()) {
  steps_.reserve(schema.size());  // so that their codes stay where they are
  for (unsigned dimension = 0; dimension < schema.size(); ++dimension) {
    const unsigned column = version.column(dimension);
    auto codes = codes_of(version, column, conditions);
    if (!codes) continue;
    steps_.push_back({schema[column].name, *std::move(codes)});
    if (steps_.back().codes.empty()) {
      box_.reset();
    } else if (box_) {
      box_->restrict(dimension, steps_.back().codes);
    }
  }
}

/// Whether the keys of an inserted row fulfil all conditions.
bool Query::admits(std::span<const Key> keys) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    return condition.admits(schema_[condition.column].type, keys[condition.column]);
  });
}

std::uint64_t Query::count() const {
  std::uint64_t rows = box_ ? version_.elf().count(*box_) : 0;
  run_inserted([&](auto&&...) {
    ++rows;
    return true;
  });
  return rows;
}

ElfPlan Query::plan() const {
  ElfPlan plan{steps_, box_.has_value(), 0, {}};
  if (box_) plan.dimensions = version_.elf().explain(*box_);
  version_.inserted().scan(version_.tids(), [&](std::uint64_t, std::string_view record) {
    plan.delta_rows += record.empty() ? 0 : 1;
    return true;
  });
  return plan;
}

void Query::throw_damaged(std::uint64_t tid) const {
  throw Error(Errc::corrupt, fmt::format("{}: the inserted row {} is damaged",
                                         version_.elf().pool().path().string(), tid));
}

}  // namespace perdix::detail::index::elf_table
