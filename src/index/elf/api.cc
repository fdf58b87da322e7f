// The public class Elf: checks what it is given; the engine does the rest.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <perdix/elf.h>
#include <perdix/error.h>

#include "index/common/open_or_remove.h"
#include "index/common/points_engine.h"
#include "index/elf/elf.h"
#include "index/elf/progress.h"
#include "pool/as_errors.h"
#include "pool/forks.h"
#include "pool/run_call.h"

namespace perdix {

namespace elf = detail::index::elf;

namespace {

static_assert(Elf::kMaxDimensions == elf::kMaxDimensions && Elf::kMaxRows == elf::kMaxTids);

[[noreturn]] void throw_invalid(const std::string& message) {
  throw Error(Errc::invalid_argument, message);
}

IndexInfo info_of(std::string_view name) {
  IndexInfo info{std::string(name), std::string(elf::kEngineName), Kind::u64, Kind::u64};
  info.model = DataModel::points;
  return info;
}

std::unique_ptr<elf::Table> open_or_create(const Pool& pool, std::string_view name,
                                           unsigned dimensions) {
  if (dimensions == 0 || dimensions > Elf::kMaxDimensions) {
    throw_invalid(
        fmt::format("an Elf has 1 to {} dimensions, not {}", Elf::kMaxDimensions, dimensions));
  }
  detail::pool::PoolCore& core = *pool.core();
  return detail::index::open_or_remove(
      core, info_of(name), [&](std::uint64_t& root) { elf::Table::destroy(core, root); },
      [&](detail::pool::IndexHandle handle) {
        return std::make_unique<elf::Table>(std::move(handle), dimensions);
      });
}

std::unique_ptr<elf::Table> open_existing(const Pool& pool, std::string_view name) {
  detail::pool::PoolCore& core = *pool.core();
  const IndexInfo info = core.index_info(name);  // throws not_found
  auto table = std::make_unique<elf::Table>(core.open_index(info_of(name)));
  if (table->dimensions() == 0) {
    throw Error(Errc::not_found, fmt::format("{}: the creation of the table '{}' did not end; open "
                                             "it with a number of dimensions",
                                             core.path().string(), info.name));
  }
  return table;
}

void require_point(const elf::Table& table, Elf::Point point) {
  if (point.size() == table.dimensions()) return;
  throw_invalid(
      fmt::format("a point of this Elf has {} values, not {}", table.dimensions(), point.size()));
}

elf::Box box_of(const elf::Table& table, Elf::Point lower, Elf::Point upper) {
  require_point(table, lower);
  require_point(table, upper);
  elf::Box box = table.box();
  for (unsigned d = 0; d < table.dimensions(); ++d) {
    if (lower[d] > upper[d]) {
      throw_invalid(
          fmt::format("the bounds of dimension {} cross: {} is above {}", d, lower[d], upper[d]));
    }
  }
  std::copy(lower.begin(), lower.end(), box.lower.begin());
  std::copy(upper.begin(), upper.end(), box.upper.begin());
  return box;
}

/// None if no row can meet all conditions.
std::optional<elf::Box> box_of(const elf::Table& table, std::span<const ElfCondition> conditions) {
  elf::Box box = table.box();
  bool possible = true;
  for (const auto& [dimension, interval] : conditions) {
    if (dimension >= table.dimensions()) {
      throw_invalid(fmt::format("this Elf has {} dimensions, and none with the number {}",
                                table.dimensions(), dimension));
    }
    if (interval.lower > interval.upper) {
      throw_invalid(fmt::format("the bounds of dimension {} cross: {} is above {}", dimension,
                                interval.lower, interval.upper));
    }
    std::uint32_t& lower = box.lower[dimension];
    std::uint32_t& upper = box.upper[dimension];
    lower = std::max(lower, interval.lower);
    upper = std::min(upper, interval.upper);
    possible = possible && lower <= upper;
  }
  return possible ? std::optional(box) : std::nullopt;
}

void require_columns(const elf::Table& table, Elf::Columns columns) {
  if (columns.size() != table.dimensions()) {
    throw_invalid(fmt::format("this Elf has {} dimensions, and is to be built of {} columns",
                              table.dimensions(), columns.size()));
  }
  for (const std::span<const std::uint32_t> column : columns) {
    if (column.size() != columns[0].size())
      throw_invalid(fmt::format("columns have {} and {} rows; all need as many", columns[0].size(),
                                column.size()));
  }
  if (columns[0].size() > Elf::kMaxRows) {
    throw Error(Errc::too_large, fmt::format("an Elf has at most {} rows", Elf::kMaxRows));
  }
}

}  // namespace

CachePolicy operator|(const CachePolicy& a, const CachePolicy& b) {
  CachePolicy both;
  both.full = a.full || b.full;
  both.levels = std::max(a.levels, b.levels);
  both.dynamic_bytes = std::max(a.dynamic_bytes, b.dynamic_bytes);
  both.eviction = std::max(a.eviction, b.eviction);
  both.probable_bytes = std::max(a.probable_bytes, b.probable_bytes);
  both.budget = std::min(a.budget, b.budget);
  return both;
}

void Elf::Close::operator()(elf::Table* table) const noexcept {
  table->pool().health().forked() ? detail::pool::leave_to_parent(table) : delete table;
}

template <class Call>
auto Elf::run(Call call) const {
  return detail::pool::run_call(table_->pool().health(), *table_, call);
}

Elf::Elf(const Pool& pool, std::string_view name, unsigned dimensions)
    : table_(detail::pool::as_errors(*pool.core(), [&] {
               return open_or_create(pool, name, dimensions);
             }).release()) {}

Elf::Elf(const Pool& pool, std::string_view name)
    : table_(detail::pool::as_errors(*pool.core(), [&] {
               return open_existing(pool, name);
             }).release()) {}

Elf::Elf(Elf&&) noexcept = default;
Elf& Elf::operator=(Elf&&) noexcept = default;
Elf::~Elf() = default;

unsigned Elf::dimensions() const { return table_->dimensions(); }

bool Elf::build(Columns columns, const Progress& progress) {
  run([&](elf::Table& table) {
    require_columns(table, columns);
    return true;
  });
  return elf::with_progress(progress, [&](const Progress& guarded) {
    return run([&](elf::Table& table) { return table.build(columns, guarded); });
  });
}

bool Elf::compact(const Progress& progress) {
  return elf::with_progress(progress, [&](const Progress& guarded) {
    return run([&](elf::Table& table) { return table.compact(guarded); });
  });
}

Elf::Tid Elf::insert(Point point) {
  return run([&](elf::Table& table) {
    require_point(table, point);
    return table.insert(point);
  });
}

bool Elf::erase(Tid tid) {
  return run([&](elf::Table& table) { return table.erase(tid); });
}

std::optional<Elf::Tid> Elf::exact(Point point) const {
  return run([&](const elf::Table& table) {
    require_point(table, point);
    return table.exact(point);
  });
}

std::vector<Elf::Tid> Elf::range(Point lower, Point upper) const {
  return run([&](const elf::Table& table) {
    std::vector<Tid> tids;
    table.collect(box_of(table, lower, upper), tids);
    return tids;
  });
}

std::vector<Elf::Tid> Elf::partial(std::span<const ElfCondition> conditions) const {
  return run([&](const elf::Table& table) {
    std::vector<Tid> tids;
    if (const auto box = box_of(table, conditions)) table.collect(*box, tids);
    return tids;
  });
}

std::uint64_t Elf::count(Point lower, Point upper) const {
  return run([&](const elf::Table& table) { return table.count(box_of(table, lower, upper)); });
}

std::uint64_t Elf::count(std::span<const ElfCondition> conditions) const {
  return run([&](const elf::Table& table) {
    const auto box = box_of(table, conditions);
    return box ? table.count(*box) : 0;
  });
}

void Elf::range(Point lower, Point upper, TidVisitor visit) const {
  const elf::Box box = run([&](const elf::Table& table) { return box_of(table, lower, upper); });
  table_->show(box, visit);
}

void Elf::partial(std::span<const ElfCondition> conditions, TidVisitor visit) const {
  const auto box = run([&](const elf::Table& table) { return box_of(table, conditions); });
  if (box) table_->show(*box, visit);
}

std::uint64_t Elf::size() const {
  return run([](const elf::Table& table) { return table.size(); });
}

void Elf::cache(const CachePolicy& policy) {
  run([&](elf::Table& table) {
    table.cache(policy);
    return true;
  });
}

void Elf::wait_for_cache() const {
  run([](const elf::Table& table) {
    table.wait_for_cache();
    return true;
  });
}

std::vector<ElfStep> Elf::explain(Point lower, Point upper) const {
  return run([&](const elf::Table& table) { return table.explain(box_of(table, lower, upper)); });
}

ElfStats Elf::stats() const {
  return run([](const elf::Table& table) { return table.elf_stats(); });
}

CheckReport Elf::check() const {
  return run([](const elf::Table& table) { return table.check(); });
}

namespace detail::index::elf {
namespace {
constexpr std::array kEngines = {points_engine<Table>(kEngineName)};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::elf

}  // namespace perdix
