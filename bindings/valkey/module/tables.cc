#include "tables.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace perdix::valkey {
namespace {

/// What of the settings concerns write buffers, as far as the engine has such options. A technique
/// without a budget has no effect. Opening says what is wrong with an engine that there is not.
IndexOptions options_for(const Settings& settings, const std::string& engine) {
  IndexOptions options;
  if (settings.dram_budget == 0 || std::ranges::count(Index::engines(), engine) == 0)
    return options;
  const std::vector<OptionInfo> known = Index::options(engine);
  const auto set = [&](const char* name, std::string value) {
    if (std::ranges::count(known, name, &OptionInfo::name) > 0)
      options.named[name] = std::move(value);
  };
  set("dram_budget", std::to_string(settings.dram_budget));
  set("technique", settings.technique_name());
  return options;
}

}  // namespace

Tables::Tables(const Pool& pool, const Settings& settings, Reaper& reaper)
    : pool_(pool), settings_(settings), reaper_(reaper) {
  for (const IndexInfo& info : pool_.indexes()) {
    const std::uint64_t id = table_id(info.name);
    if (id == 0) continue;
    found_.emplace(id, info);
    next_id_ = std::max(next_id_, id + 1);
  }
}

std::shared_ptr<Table> Tables::add(std::uint64_t id, IndexInfo info) {
  const IndexOptions options = options_for(settings_, info.engine);
  auto table = std::make_shared<Table>(pool_, id, std::move(info), options);
  const std::lock_guard lock(mutex_);
  tables_[id] = table;
  return table;
}

std::shared_ptr<Table> Tables::create(std::string engine, Kind key_kind, Kind value_kind) {
  const std::uint64_t id = next_id_++;
  auto table = add(id, {.name = table_name(id),
                        .engine = std::move(engine),
                        .key_kind = key_kind,
                        .value_kind = value_kind});
  table->index();
  return table;
}

std::shared_ptr<Table> Tables::adopt(std::uint64_t id) {
  const auto found = found_.find(id);
  if (found == found_.end()) return nullptr;
  auto table = add(id, found->second);
  found_.erase(found);
  return table;
}

std::shared_ptr<Table> Tables::find(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(id);
  return found != tables_.end() ? found->second.lock() : nullptr;
}

std::vector<std::shared_ptr<Table>> Tables::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Table>> result;
  for (const auto& [id, held] : tables_)
    if (auto table = held.lock()) result.push_back(std::move(table));
  return result;
}

void Tables::doom(std::shared_ptr<Table> table) {
  const std::lock_guard lock(mutex_);
  doomed_.push_back(std::move(table));
}

void Tables::drop_doomed() {
  std::vector<std::shared_ptr<Table>> doomed;
  {
    const std::lock_guard lock(mutex_);
    if (doomed_.empty()) return;
    doomed.swap(doomed_);
    for (const auto& table : doomed) tables_.erase(table->id());
  }
  for (auto& table : doomed) reaper_.drop_table(std::move(table));
}

void Tables::drop_orphans() {
  while (!found_.empty()) reaper_.drop_table(adopt(found_.begin()->first));
}

void Tables::close() {
  for (const auto& table : all()) table->close();
}

}  // namespace perdix::valkey
