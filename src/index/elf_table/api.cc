// The public class ElfTable. The engine checks its arguments. This layer separates its errors from
// those of visitors.
#include <array>

#include <fmt/format.h>

#include <perdix/elf_table.h>
#include <perdix/error.h>

#include "index/common/open_or_remove.h"
#include "index/common/points_engine.h"
#include "index/elf/progress.h"
#include "index/elf_table/arrow.h"
#include "index/elf_table/elf_table.h"
#include "index/elf_table/query.h"
#include "pool/as_errors.h"
#include "pool/forks.h"
#include "pool/run_call.h"

namespace perdix {

namespace elf_table = detail::index::elf_table;

namespace {

IndexInfo info_of(std::string_view name) {
  IndexInfo info{std::string(name), std::string(elf_table::kEngineName), Kind::u64, Kind::u64};
  info.model = DataModel::points;
  return info;
}

std::unique_ptr<elf_table::Table> open_or_create(const Pool& pool, std::string_view name,
                                                 const elf_table::Schema& schema) {
  elf_table::require_schema(schema);
  detail::pool::PoolCore& core = *pool.core();
  return detail::index::open_or_remove(
      core, info_of(name), [&](std::uint64_t& root) { elf_table::Table::destroy(core, root); },
      [&](detail::pool::IndexHandle handle) {
        return std::make_unique<elf_table::Table>(std::move(handle), schema);
      });
}

std::unique_ptr<elf_table::Table> open_existing(const Pool& pool, std::string_view name) {
  detail::pool::PoolCore& core = *pool.core();
  const IndexInfo info = core.index_info(name);  // throws not_found
  auto table = std::make_unique<elf_table::Table>(core.open_index(info_of(name)));
  if (table->schema().empty()) {
    throw Error(Errc::not_found,
                fmt::format("{}: the creation of the table '{}' did not end; open it with columns",
                            core.path().string(), info.name));
  }
  return table;
}

/// The conditions of a query, and what it reads, for as long as it runs.
struct RunningQuery {
  RunningQuery(const elf_table::Table& table, ElfTable::Where where,
               elf_table::Table::Pin::For reason = elf_table::Table::Pin::For::call)
      : schema(table.schema()),
        conditions(elf_table::conditions_of(schema, where)),
        version(table, reason),
        query(*version, schema, conditions) {}

  const elf_table::Schema& schema;
  const std::vector<elf_table::Condition> conditions;
  const elf_table::Table::Pin version;
  const elf_table::Query query;
};

/// A query that shows rows to a visitor.
std::unique_ptr<RunningQuery> shown_query(const elf_table::Table& table, ElfTable::Where where) {
  return std::make_unique<RunningQuery>(table, where, elf_table::Table::Pin::For::visitor);
}

}  // namespace

void ElfTable::Close::operator()(elf_table::Table* table) const noexcept {
  table->pool().health().forked() ? detail::pool::leave_to_parent(table) : delete table;
}

template <class Call>
auto ElfTable::run(Call call) const {
  return detail::pool::run_call(table_->pool().health(), *table_, call);
}

ElfTable::ElfTable(const Pool& pool, std::string_view name, const std::vector<ElfColumn>& columns)
    : table_(detail::pool::as_errors(*pool.core(), [&] {
               return open_or_create(pool, name, columns);
             }).release()) {}

ElfTable::ElfTable(const Pool& pool, std::string_view name)
    : table_(detail::pool::as_errors(*pool.core(), [&] {
               return open_existing(pool, name);
             }).release()) {}

ElfTable::ElfTable(ElfTable&&) noexcept = default;
ElfTable& ElfTable::operator=(ElfTable&&) noexcept = default;
ElfTable::~ElfTable() = default;

const std::vector<ElfColumn>& ElfTable::columns() const { return table_->schema(); }

bool ElfTable::build(std::span<const ElfColumnData> columns, const ElfBuildOptions& options) {
  return detail::index::elf::with_progress(options.progress, [&](const Elf::Progress& guarded) {
    return run([&](elf_table::Table& table) {
      return table.build(columns, {options.order, guarded});
    });
  });
}

bool ElfTable::build(const ArrowSchema& schema, const ArrowArray& array,
                     const ElfBuildOptions& options) {
  const auto columns = run([&](const elf_table::Table& table) {
    return std::make_unique<elf_table::ArrowColumns>(table.schema(), schema, array);
  });
  return build(columns->data(), options);
}

std::vector<ElfColumn> ElfTable::columns_of(const ArrowSchema& schema) {
  return detail::pool::as_errors([&] { return elf_table::columns_of(schema); });
}

ElfTable::Tid ElfTable::insert(std::span<const ElfValue> row) {
  return run([&](elf_table::Table& table) { return table.insert(row); });
}

bool ElfTable::erase(Tid tid) {
  return run([&](elf_table::Table& table) { return table.erase(tid); });
}

bool ElfTable::compact(const Elf::Progress& progress) {
  return detail::index::elf::with_progress(progress, [&](const Elf::Progress& guarded) {
    return run([&](elf_table::Table& table) { return table.compact(guarded); });
  });
}

std::vector<ElfTable::Tid> ElfTable::select(Where where) const {
  return run([&](const elf_table::Table& table) {
    std::vector<Tid> tids;
    const auto add = [&](Tid tid, auto&&...) {
      tids.push_back(tid);
      return true;
    };
    RunningQuery(table, where).query.run(add, add);
    return tids;
  });
}

void ElfTable::select(Where where, TidVisitor visit) const {
  const auto running =
      run([&](const elf_table::Table& table) { return shown_query(table, where); });
  const auto show = [&](Tid tid, auto&&...) { return visit(tid); };
  running->query.run(show, show);
}

std::uint64_t ElfTable::count(Where where) const {
  return run([&](const elf_table::Table& table) {
    return where.empty() ? table.size() : RunningQuery(table, where).query.count();
  });
}

void ElfTable::rows(Where where, ElfRowVisitor visit) const {
  const auto running =
      run([&](const elf_table::Table& table) { return shown_query(table, where); });
  const elf_table::Schema& schema = running->schema;
  running->query.run(
      [&](Tid tid, elf_table::Slot slot) {
        const Row row = detail::pool::as_errors(
            [&] { return elf_table::row_at(*running->version, schema, slot); });
        return visit(tid, row);
      },
      [&](Tid tid, std::span<const elf_table::Key> keys) {
        const Row row = detail::pool::as_errors([&] { return elf_table::row_of(schema, keys); });
        return visit(tid, row);
      });
}

std::optional<ElfTable::Row> ElfTable::row(Tid tid) const {
  return run([&](const elf_table::Table& table) { return table.row(tid); });
}

void ElfTable::to_arrow(Where where, ArrowSchema& schema, ArrowArray& array, bool utf8) const {
  elf_table::ArrowRows rows(columns(), utf8);
  this->rows(where, [&](Tid, std::span<const ElfValue> row) {
    detail::pool::as_errors([&] { rows.add(row); });
    return true;
  });
  detail::pool::as_errors([&] { rows.move_to(schema, array); });
}

void ElfTable::cache(const CachePolicy& policy) {
  run([&](elf_table::Table& table) {
    table.cache(policy);
    return true;
  });
}

void ElfTable::wait_for_cache() const {
  run([](const elf_table::Table& table) {
    table.wait_for_cache();
    return true;
  });
}

ElfPlan ElfTable::explain(Where where) const {
  return run(
      [&](const elf_table::Table& table) { return RunningQuery(table, where).query.plan(); });
}

std::uint64_t ElfTable::size() const {
  return run([](const elf_table::Table& table) { return table.size(); });
}

ElfTableStats ElfTable::stats() const {
  return run([](const elf_table::Table& table) { return table.table_stats(); });
}

CheckReport ElfTable::check() const {
  return run([](const elf_table::Table& table) { return table.check(); });
}

namespace detail::index::elf_table {
namespace {
constexpr std::array kEngines = {points_engine<Table>(kEngineName)};
}
extern const EngineSet engine_set = {kEngines};
}  // namespace detail::index::elf_table

}  // namespace perdix
