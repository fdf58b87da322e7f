#include "index/elf_table/query.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::elf_table {
namespace {

/// The most boxes of a query: add_boxes() filters where more would be needed.
constexpr std::size_t kMaxBoxes = 64;

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

bool contains(std::span<const ElfInterval> intervals, std::uint32_t code) {
  const auto behind =
      std::partition_point(intervals.begin(), intervals.end(),
                           [&](const ElfInterval& interval) { return interval.lower <= code; });
  return behind != intervals.begin() && code <= behind[-1].upper;
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

/// Adds what one more box does in each dimension to the sum of those before.
void add_steps(std::vector<ElfStep>& all, const std::vector<ElfStep>& steps) {
  if (all.empty()) {
    all = steps;
    return;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool first = all[i].lists == 0;
    all[i].lists += steps[i].lists;
    all[i].cached += steps[i].cached;
    all[i].highest_probability = std::max(all[i].highest_probability, steps[i].highest_probability);
    if (steps[i].lists == 0) continue;
    all[i].lowest_probability =
        first ? steps[i].lowest_probability
              : std::min(all[i].lowest_probability, steps[i].lowest_probability);
  }
}

}  // namespace

Query::Query(const Version& version, const Schema& schema, std::span<const Condition> conditions)
    : version_(version), schema_(schema), conditions_(conditions) {
  boxes_.push_back(version.elf().box());
  for (unsigned dimension = 0; dimension < schema.size(); ++dimension) {
    const unsigned column = version.column(dimension);
    auto codes = codes_of(version, column, conditions);
    if (!codes) continue;
    const std::size_t filters = filters_.size();
    add_boxes(dimension, *codes);
    plan_.steps.push_back({schema[column].name, *std::move(codes), filters_.size() > filters});
  }
}

/// Restricts all boxes to some codes of a dimension: divides each box, or, if there would be too
/// many, bounds it by the least and the greatest code and adds a filter.
void Query::add_boxes(unsigned dimension, std::span<const ElfInterval> codes) {
  const auto bound = [&](elf::Box& box, std::uint32_t lower, std::uint32_t upper) {
    box.lower[dimension] = lower;
    box.upper[dimension] = upper;
  };
  if (!boxes_.empty() && !codes.empty() && codes.size() > kMaxBoxes / boxes_.size()) {
    filters_.push_back({version_.column(dimension), {codes.begin(), codes.end()}});
    for (elf::Box& box : boxes_) bound(box, codes.front().lower, codes.back().upper);
    return;
  }
  std::vector<elf::Box> all;
  for (const elf::Box& box : boxes_) {
    for (const ElfInterval& interval : codes)
      bound(all.emplace_back(box), interval.lower, interval.upper);
  }
  boxes_ = std::move(all);
}

/// Whether a row of the boxes passes the filters.
bool Query::passes(Tid tid) const {
  return std::all_of(filters_.begin(), filters_.end(), [&](const Filter& filter) {
    return contains(filter.codes, version_.code(filter.column, tid));
  });
}

/// Whether the keys of an inserted row fulfil all conditions.
bool Query::admits(std::span<const Key> keys) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    return condition.admits(schema_[condition.column].type, keys[condition.column]);
  });
}

std::uint64_t Query::count() const {
  std::uint64_t rows = 0;
  const auto add = [&](auto&&...) {
    ++rows;
    return true;
  };
  if (!filters_.empty()) {
    run(add, add);
    return rows;
  }
  for (const elf::Box& box : boxes_) rows += version_.elf().count(box);
  run_inserted(add);
  return rows;
}

ElfPlan Query::plan() const {
  ElfPlan plan = plan_;
  plan.boxes = boxes_.size();
  for (const elf::Box& box : boxes_) add_steps(plan.dimensions, version_.elf().explain(box));
  version_.inserted().for_each([&](std::uint64_t, std::string_view record) {
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
