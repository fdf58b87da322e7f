// What the public class TipsOf calls.
#include <array>

#include <perdix/tips_of.h>

#include "index/common/open_or_remove.h"
#include "index/common/points_engine.h"
#include "index/tips_of/tips_of.h"
#include "pool/as_errors.h"
#include "pool/forks.h"
#include "util/checksum.h"

namespace perdix::detail::index::tips_of {
namespace {
constexpr std::array kEngines = {points_engine<Table>(kEngineName, DataModel::container)};
}
extern const EngineSet engine_set = {kEngines};

std::uint64_t fingerprint(const char* name, std::span<const std::uint64_t> facts) {
  const std::string_view text(name);
  return util::checksum(facts.data(), facts.size_bytes(), util::checksum(text.data(), text.size()));
}

WriteScope::WriteScope(Table& table) : table_(table) {
  table.pool().require_writable();  // a child of fork() has no locks to take
  table.begin_write();
}

WriteScope::~WriteScope() {
  if (ended_) return;
  table_.pool().health().forked() ? table_.abandon() : table_.roll_back();
}

void WriteScope::commit() {
  pool::as_errors(table_.pool(), [&] { table_.prepare_commit(); });
  ended_ = true;
  table_.commit();
}

ReadScope::ReadScope(const Table& table) : table_(table) {
  table.pool().require_usable();  // a child of fork() has no locks to take
  table.begin_read();
}

/// In a child that the callable has forked the lock is its parent's.
ReadScope::~ReadScope() {
  if (!table_.pool().health().forked()) table_.end_read();
}

void ReadScope::end() const { table_.pool().require_usable(); }

void Close::operator()(Table* table) const noexcept {
  table->pool().health().forked() ? pool::leave_to_parent(table) : delete table;
}

OpenTable open(const Pool& pool, std::string_view name, const ContainerType& type,
               Purpose purpose) {
  pool::PoolCore& core = *pool.core();
  return pool::as_errors(core, [&] {
    IndexInfo info{std::string(name), std::string(kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::container;
    return open_or_remove(
        core, info, [&](std::uint64_t& root) { Table::destroy(core, root); },
        [&](pool::IndexHandle handle) {
          return OpenTable(std::make_unique<Table>(std::move(handle), type, purpose).release());
        });
  });
}

void* container_of(const Table& table) noexcept { return table.container(); }

CheckReport check(const Table& table) {
  return pool::as_errors(table.pool(), [&] {
    table.pool().require_usable();
    CheckReport report = table.check();
    table.pool().require_usable();
    return report;
  });
}

TipsOfStats stats(const Table& table) {
  return pool::as_errors(table.pool(), [&] {
    table.pool().require_usable();
    return table.container_stats();
  });
}

}  // namespace perdix::detail::index::tips_of
